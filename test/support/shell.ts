/** A shell that has `hx` on its PATH, as after `npm install --global .`, and an `npm` that asks no registry and builds nothing, since other tests use the build meanwhile. */
import { execFile } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './documents.js'
import { CLI, type Ended, type Place } from './hx.js'

const NPM = `#!/bin/sh
case "$*" in
  ci | test) grep -q "^npm $1" "$HX_ROOT/.ci/run" ;;
  'run '*) cd "$HX_ROOT" && exec sh -c "$(node -p 'require("./package.json").scripts[process.argv[1]].replace("npm run build --silent && ", "")' "$2")" ;;
  *) echo "npm $*: nothing stands in for it" >&2; exit 1 ;;
esac
`
export function shell(here: Place): Place & { sh(script: string, env?: Record<string, string>, cwd?: string): Promise<Ended> } {
  const bin = join(here.folder, '../bin')
  for (const [name, text] of [['hx', `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`], ['npx', '#!/bin/sh\nexec "$@"\n'], ['npm', NPM]] as const) chmodSync(here.write(`../bin/${name}`, text), 0o755)
  Object.assign(here.env, { PATH: `${bin}:${here.env['PATH']!}`, HX_ROOT: ROOT })
  const sh = (script: string, env: Record<string, string> = {}, cwd = here.folder) => new Promise<Ended>(resolve => {
    execFile('bash', ['--norc', '-euo', 'pipefail', '-c', script], { cwd, env: { ...here.env, ...env } }, (error, stdout, stderr) => { resolve({ code: error ? Number(error.code ?? 1) : 0, signal: null, stdout, stderr }) }).stdin?.end()
  })
  return { ...here, sh }
}
