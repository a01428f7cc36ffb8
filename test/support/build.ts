/** Builds `dist/` once before the tests, so that those of the command run what users run. */
import { execFileSync } from 'node:child_process'

export function setup(): void {
  if (process.env['HX_TEST_BUILT'] === '1') return
  execFileSync('npm', ['run', 'build', '--silent'], { stdio: 'inherit' })
}
