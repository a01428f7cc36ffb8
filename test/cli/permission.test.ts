import { describe, expect, it } from 'vitest'
import { place } from '../support/hx.js'

describe('hx permission test', () => {
  it('says what the policy of the config in force would do, why, and where the rule stands, and runs nothing', async () => {
    const { hx } = place({ 'harness.config.yaml': 'plugins:\n  - name: permission\n    config: { ask: ["git push *"] }\n  - tool-bash\n' })
    const said = await hx(['permission', 'test', '--trust', 'touch a; git push origin main'])
    expect([said.code, said.stdout]).toEqual([0, `ask: 'git push *' is on the ask list: git push origin main\n  about  git push origin main\n  rule   git push *, in config.ask of "permission"\n`])
    expect(JSON.parse((await hx(['permission', 'test', '--trust', '--json', '--mode', 'yes', '--', 'sudo ls'])).stdout)).toEqual({ kind: 'deny', reason: "'sudo' is on the deny list", command: 'sudo ls', rule: 'sudo', where: 'the shipped deny list (config.defaults)', tool: 'bash', mode: 'yes', plugin: 'permission' })
    expect(JSON.parse((await hx(['sessions', '--json'])).stdout)).toEqual({ sessions: [] })
  })
  it('is a usage error for a mode that there is not, and says when no policy is active', async () => {
    const { hx, write } = place({ 'harness.config.yaml': 'plugins: [tool-bash]\n' })
    const none = await hx(['permission', 'test', '--trust', 'ls'])
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('there is no command "/permission"')])
    write('harness.config.yaml', 'plugins: [permission]\n')
    expect((await hx(['permission', 'test', '--trust', '--mode', 'yolo', 'ls'])).code).toBe(2)
  })
})
