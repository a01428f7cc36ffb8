/** Runs npm in a folder, without scripts of packages, and without their peers: the host itself is `harnessx` for its plugins. What it says is shown when it fails. */
import { execFile } from 'node:child_process'
import { HarnessError } from '../errors.js'
import type { Io } from './io.js'
import { oneLine } from './terminal.js'

const LIMIT_MS = 300_000

export function runNpm(io: Io, folder: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile('npm', [...args, '--ignore-scripts', '--legacy-peer-deps', '--no-audit', '--no-fund', '--loglevel', 'error', '--prefix', folder], { cwd: folder, env: io.env, timeout: LIMIT_MS, maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (!error) { resolve(); return }
      const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      reject(new HarnessError(missing ? 'usage' : 'storage_failed', missing ? 'npm is not on the PATH; it comes with Node' : `npm ${args.join(' ')} failed in ${folder}: ${oneLine(reasonIn(stderr || stdout) || error.message, 400)}`, { cause: error }))
    })
  })
}
/** The lines that say why, without npm's own advice. */
const reasonIn = (said: string): string => said.split('\n').filter(line => /^npm (error|ERR!)/.test(line) && !/A complete log|debug-0\.log/.test(line)).map(line => line.replace(/^npm (?:error|ERR!)\s*/, '')).join(' ')
