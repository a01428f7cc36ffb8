import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../core/loader/config.js'
import { editConfig, setEnabled } from '../../core/loader/config-edit.js'
import { folder } from '../support/folder.js'
import { place, until } from '../support/hx.js'

const TELLS = `import { type Context } from 'harnessx'
export const name = 'tells'
export function apply(ctx: Context, config: any) { ctx.on('agent/session-start', () => { process.stderr.write('length ' + String(config.apiKey).length + '\\n') }) }
`
const ROW = 'plugins:\n  - name: tells    # mine\n    config: { apiKey: "${env:HX_TEST_KEY}" }\n  - model-offline\n'
const KEY = 'sk-very-secret-1234'

describe('a reference to the environment', () => {
  it('is resolved for its plugin and shown nowhere: not by edits, lists, errors, logs or sessions', async () => {
    const { hx, folder } = place({ 'harness.config.yaml': ROW, 'plugins/tells.ts': TELLS })
    const env = { HX_TEST_KEY: KEY }
    const outputs = []
    for (const args of [['agent', '--offline', '-v', 'hello'], ['plugins', 'disable', 'model-offline'], ['plugins', 'enable', 'model-offline'], ['plugins', '--json'], ['plugins', 'info', 'tells', '--json'], ['config', 'check', '-v'], ['hooks', '--json'], ['sessions', '--json']]) outputs.push(await hx([...args, '--trust'], { env }))
    expect(outputs[0]!.stderr).toContain(`length ${KEY.length}`)
    expect(outputs.map(({ code }) => code)).toEqual(outputs.map(() => 0))
    expect(JSON.stringify(outputs)).not.toContain(KEY)
    expect(readFileSync(join(folder, 'harness.config.yaml'), 'utf8')).toContain(ROW.slice(0, ROW.indexOf('  - model')))
  })
  it('that is not set is named with its place, and no value of another is shown', async () => {
    const { hx } = place({ 'harness.config.yaml': ROW.replace('apiKey', 'other: "${env:HX_TEST_KEY}", apiKey').replace(/HX_TEST_KEY}" }/, 'HX_TEST_GONE}" }'), 'plugins/tells.ts': TELLS })
    const { code, stdout } = await hx(['config', 'check', '--trust'], { env: { HX_TEST_KEY: KEY } })
    expect([code, stdout.includes(KEY)]).toEqual([2, false])
    expect(stdout).toMatch(/harness\.config\.yaml:3:\d+ .*HX_TEST_GONE/)
  })
})

describe('a config file as editors of all kinds write it', () => {
  it.each([
    ['with CRLF line ends', ROW.replaceAll('\n', '\r\n')],
    ['with a byte order mark', `\ufeff${ROW}`],
    ['with a byte order mark and CRLF', `\ufeff${ROW.replaceAll('\n', '\r\n')}`],
    ['without a last newline', ROW.trimEnd()],
    ['with a document marker', `---\n${ROW}...\n`],
    ['with a %YAML directive', `%YAML 1.2\n---\n${ROW}`],
  ])('%s is edited in place, and edited back to the same bytes', async (_, text) => {
    const file = folder().write('harness.config.yaml', text.replace('  - model-offline', '  - { name: model-offline, enabled: true }'))
    const before = readFileSync(file)
    for (const enabled of [false, true]) {
      expect(await editConfig(file, setEnabled('model-offline', enabled))).toBe(true)
      const { config, problems } = parseConfig(readFileSync(file, 'utf8'), file)
      expect([problems, config?.plugins.map(row => [row.id, row.enabled])]).toEqual([[], [['tells', true], ['model-offline', enabled]]])
    }
    expect(readFileSync(file).equals(before)).toBe(true)
  })
  it.each([
    ['UTF-16', Buffer.from(`\ufeff${ROW}`, 'utf16le')],
    ['UTF-16 without a mark', Buffer.from(ROW, 'utf16le')],
    ['text with a NUL', Buffer.from('plugins: [audit]\0\n')],
    ['Latin-1', Buffer.from('plugins: [audit] # \u00e9\n', 'latin1')],
  ])('in %s is refused with what is wrong, and no edit writes over it', async (_, bytes) => {
    const { hx, folder } = place()
    const file = join(folder, 'harness.config.yaml')
    writeFileSync(file, bytes)
    const checked = await hx(['config', 'check', '--trust'])
    expect([checked.code, checked.stdout + checked.stderr]).toEqual([2, expect.stringMatching(/harness\.config\.yaml (?:is not UTF-8|has a byte at \d+ that no text has \(NUL\)); save it as UTF-8 in your editor/)])
    await expect(editConfig(file, setEnabled('audit', false))).rejects.toMatchObject({ code: 'config_invalid' })
    expect(readFileSync(file).equals(bytes)).toBe(true)
  })
})

describe('a config that is broken while the daemon runs', () => {
  it('changes nothing, says why, and is in force again with the fix', async () => {
    const text = 'plugins:\n  - tool-fs\n  - model-offline\n'
    const here = place({ 'harness.config.yaml': text, 'README.md': '# Demo\n' })
    const daemon = here.start(['start', '--foreground', '--trust'])
    await until(() => daemon.output().stderr.includes('listens on'))
    const config = async () => (JSON.parse((await here.hx(['status', '--json'])).stdout) as { config: { state: string; problem?: string } }).config
    for (const [broken, says] of [['plugins:\n\t- tool-fs\n', /2:1 tabs are not allowed/], ['plugins:\n  - name tool-fs\n    x: y\n', /harness\.config\.yaml:\d/], ['', /1:1 the file is empty/], ['plugins: [tool-fs, tool-fs]\n', /the id "tool-fs" stands here and in line 1/]] as const) {
      here.write('harness.config.yaml', broken)
      await until(async () => says.test((await config()).problem ?? ''))
      expect(await config()).toMatchObject({ state: 'rejected' })
      expect((await here.hx(['agent', '--offline', 'Read README.md'])).stdout).toContain('"Demo"')
    }
    here.write('harness.config.yaml', `# mended\n${text}`)
    await until(async () => (await config()).state === 'in force')
    daemon.child.kill('SIGTERM')
    expect((await daemon.ended).code).toBe(0)
  })
})
