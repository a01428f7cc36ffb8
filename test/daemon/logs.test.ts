import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { writeCrashReport } from '../../core/daemon/crash-report.js'
import { LogFile, logFiles } from '../../core/daemon/log-file.js'
import { lineOf, readLine } from '../../core/daemon/log-line.js'
import { takePrints } from '../../core/daemon/prints.js'
import { Secrets } from '../../core/kernel/secrets.js'
import { daemon, type RunningDaemon } from '../support/daemon.js'
import { folder } from '../support/folder.js'
import { place, until } from '../support/hx.js'

const FILES = { 'harness.config.yaml': 'plugins: [loud, tool-fs, model-openai]\n', 'plugins/loud.ts': `
import { existsSync } from 'node:fs'
import net from 'node:net'
export const name = 'loud'
export function apply(ctx) {
  console.log('printed\\nin two lines \\u001b]52;c;x\\u0007')
  ctx.logger.warn('careful: ' + ctx.get('keys').get('OPENAI_API_KEY'), { apiKey: 'abc', header: 'Bearer 0123456789' })
  ctx.logger.debug('fine print')
  const { emit } = net.Server.prototype
  net.Server.prototype.emit = function (event, ...args) {
    if (event === 'connection' && existsSync('break')) { const error = new Error('hx-canary-9 is broken'); error.stack = 'Error: hx-canary-9 is broken'; throw error }
    return emit.call(this, event, ...args)
  }
  ctx.effect(() => () => { net.Server.prototype.emit = emit }, 'the emit of servers')
}
` }
const logOf = ({ env }: Pick<RunningDaemon, 'env'>) => {
  const logs = join(env['HX_HOME']!, 'state', 'logs')
  return join(logs, readdirSync(logs).find(name => name.endsWith('.log'))!)
}
const lines = (text: string) => text.trim().split('\n')

describe('a line of the log', () => {
  it('is one JSON object that nothing obeys, whatever was logged, and reads back the same', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), fc.option(fc.string({ unit: 'binary' }), { nil: undefined }), (message, plugin) => {
      const line = lineOf({ ts: '2026-01-01T00:00:00.000Z', level: 'info', message, plugin })
      expect(line.indexOf('\n')).toBe(line.length - 1)
      expect(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/.test(line)).toBe(false)
      expect(readLine(line)).toMatchObject({ level: 'info', message, ...(plugin === undefined ? { part: 'core' } : { plugin }) })
    }))
    expect(lineOf({ ts: 't', level: 'info', message: '\n{"level":"fatal"}\u001b]52;' })).toContain('"message":"\\n{\\"level\\":\\"fatal\\"}\\u001b]52;"')
  })
  it('ends, however much was logged', () => {
    const line = lineOf({ ts: 't', level: 'info', message: 'x'.repeat(1_000_000), fields: { all: 'y'.repeat(1_000_000) } })
    expect(line.length).toBeLessThan(20_000)
    expect(line).toContain('(983616 more)')
  })
})

describe('the file of the log', () => {
  it('is put aside when it has grown, four times, for the owner alone', () => {
    const at = folder(), file = at.at('d.log'), log = new LogFile(file, 100)
    for (let n = 1; n <= 20; n++) log.write(`${String(n).padStart(39, '.')}\n`, () => '')
    log.close()
    expect(readdirSync(at.path).sort()).toEqual(['d.log', 'd.log.1', 'd.log.2', 'd.log.3', 'd.log.4'])
    expect(logFiles(file).map(one => lines(readFileSync(one, 'utf8')).map(line => Number(line.replaceAll('.', ''))))).toEqual([[19, 20], [17, 18], [15, 16], [13, 14], [11, 12]])
    for (const one of logFiles(file)) expect(statSync(one).mode & 0o777).toBe(0o600)
  })
  it('is made anew when somebody removes it, with its folder, and loses no line', () => {
    const at = folder(), file = at.at('logs/a.log')
    mkdirSync(at.at('logs'))
    const log = new LogFile(file)
    log.write('1\n', String)
    rmSync(at.at('logs'), { recursive: true })
    log.write('2\n', String)
    log.write('3\n', String)
    log.close()
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual(['2\n3\n', 0o600])
  })
  it('goes on in the same file when it can not be put aside', () => {
    const at = folder(), file = at.at('d.log'), log = new LogFile(file, 100)
    mkdirSync(`${file}.4/full`, { recursive: true })
    for (let n = 1; n <= 5; n++) log.write(`${String(n).padStart(39, '.')}\n`, () => '')
    log.close()
    expect(lines(readFileSync(file, 'utf8'))).toHaveLength(5)
  })
})

describe('what is printed', () => {
  it('becomes whole lines, and goes on to the stream where somebody looks', () => {
    const told: unknown[] = [], written: string[] = [], { write } = process.stderr
    process.stderr.write = ((text: string) => { written.push(text); return true }) as typeof write
    onTestFinished(() => { process.stderr.write = write })
    const back = takePrints((line, stream, plugin) => { told.push([line, stream, plugin]); process.stderr.write('told') }, { alone: true })
    process.stderr.write('one\ntw')
    process.stderr.write('o\n')
    process.stderr.write('x'.repeat(20_000))
    back()
    expect(told).toEqual([['one', 'stderr', undefined], ['two', 'stderr', undefined], ['x'.repeat(20_000), 'stderr', undefined]])
    expect(written).toContain('one\ntw')
  })
})

describe('a crash report', () => {
  it('is for the owner alone, hides secrets, has no environment and no command line, and only the newest are kept', () => {
    const at = folder(), secrets = new Secrets()
    secrets.learn(['hx-canary-1'])
    process.env['HX_TEST_MARK'] = 'hx-mark-of-the-environment'
    onTestFinished(() => { delete process.env['HX_TEST_MARK'] })
    for (let n = 0; n < 7; n++) writeCrashReport(at.path, { daemon: 'd', error: new Error('hx-canary-1 is broken'), facts: { turns: 2 } }, secrets, new Date(Date.UTC(2026, 0, 1, 0, n)))
    const reports = readdirSync(at.path).sort()
    expect(reports).toHaveLength(5)
    expect(reports[0]).toBe('d.crash-2026-01-01T00-02-00-000Z.json')
    const text = readFileSync(at.at(reports[0]!), 'utf8')
    expect(statSync(at.at(reports[0]!)).mode & 0o777).toBe(0o600)
    expect(text).not.toMatch(/canary|hx-mark|argv/)
    expect(JSON.parse(text)).toMatchObject({ turns: 2, pid: process.pid, error: { name: 'Error', message: '[hidden] is broken' } })
  })
  it('is kept though the clock was put back, and its name sorts before all others', () => {
    const at = folder(), write = (year: number, n: number) => writeCrashReport(at.path, { daemon: 'd', error: new Error(`${year}`) }, new Secrets(), new Date(Date.UTC(year, 0, 1, 0, n)))
    for (let n = 0; n < 6; n++) write(2030, n)
    const early = write(2020, 0)
    expect([existsSync(early), readdirSync(at.path).length]).toEqual([true, 5])
  })
})

describe('hx logs', () => {
  it('shows what the daemon logged and its plugins printed, of one level or plugin, readable or as it stands, and no secret', async () => {
    const one = await daemon([], FILES, { OPENAI_API_KEY: 'hx-canary-7' })
    const all = (await one.hx(['logs'])).stdout
    expect(all).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d info  loud printed\n.* info  loud in two lines \n.* warn  loud careful: \[hidden\]\n.* info  loud loaded\n/)
    expect(all).toMatch(/info  daemon the daemon of .* listens on /)
    expect(all).not.toContain('fine print')
    expect(lines((await one.hx(['logs', '--level', 'warn'])).stdout)).toHaveLength(1)
    expect(lines((await one.hx(['logs', '--plugin', 'loud', '-n', '2'])).stdout)).toHaveLength(2)
    const [record] = lines((await one.hx(['logs', '--json', '--level', 'warn'])).stdout).map(line => JSON.parse(line) as object)
    expect(record).toEqual({ ts: expect.any(String) as unknown, level: 'warn', plugin: 'loud', message: 'careful: [hidden]', fields: { apiKey: '[hidden]', header: 'Bearer [hidden]' } })
    expect(statSync(logOf(one)).mode & 0o777).toBe(0o600)
    expect(readFileSync(logOf(one), 'utf8')).not.toMatch(/canary|\u001b/)
    expect(await one.hx(['logs', '--level', 'loud'])).toMatchObject({ code: 2 })
    one.write('harness.config.yaml', `log: { level: debug }\n${FILES['harness.config.yaml']}`)
    await until(async () => (await one.hx(['plugins', 'reload', 'loud'])).code === 0 && (await one.hx(['logs'])).stdout.includes('fine print'))
  })
  it('has what a plugin logs once, also where somebody looks at the daemon', async () => {
    const here = place(FILES), seen = here.start(['--trust', 'start', '--foreground'])
    onTestFinished(async () => { seen.child.kill('SIGTERM'); await seen.ended })
    await until(() => seen.output().stderr.includes('listens on'))
    expect([seen.output().stderr.split('careful').length, (await here.hx(['logs'])).stdout.split('careful').length]).toEqual([2, 2])
  })
  it('follows through files that are put aside, and shows lines that are no records', async () => {
    const one = await daemon([], FILES), file = logOf(one)
    appendFileSync(file, 'first\nsecond \u001b[2Jline\n')
    expect((await one.hx(['logs', '-n', '1'])).stdout).toBe('second line\n')
    expect((await one.hx(['logs', '--json', '-n', '2'])).stdout).toBe('{"line":"first"}\n{"line":"second \\u001b[2Jline"}\n')
    const following = one.start(['logs', '-f', '-n', '1']), said = () => following.output().stdout
    await until(() => said().includes('second line\n'))
    appendFileSync(file, 'third ü\nhalf')
    await until(() => said().includes('third ü\n'))
    renameSync(file, `${file}.1`)
    appendFileSync(`${file}.1`, ' and whole\n')
    writeFileSync(file, 'of the next\n')
    await until(() => said().includes('half and whole\nof the next\n'))
    renameSync(`${file}.1`, `${file}.3`)                                // two at once
    renameSync(file, `${file}.2`)
    writeFileSync(`${file}.1`, 'between\n')
    writeFileSync(file, 'last\n')
    await until(() => said().includes('of the next\nbetween\nlast\n'))
    following.child.kill('SIGINT')
    expect((await following.ended).code).toBe(130)
    expect((await one.hx(['logs', '-n', '4'])).stdout).toBe('half and whole\nof the next\nbetween\nlast\n')
  })
  it('says that there is none yet', async () => {
    const one = await daemon([], FILES)
    one.write('other/harness.config.yaml', '{}\n')
    expect(await one.hx(['logs', '-C', 'other'])).toMatchObject({ code: 1, stderr: expect.stringContaining('has written a log yet') as unknown })
  })
  it('names the report of a daemon that an error of nobody\'s has ended', async () => {
    const one = await daemon([], FILES, { OPENAI_API_KEY: 'hx-canary-9' })
    one.write('break', '')
    await one.hx(['status'])
    const report = await until(() => readdirSync(dirname(logOf(one))).find(name => name.includes('.crash-')))
    await until(() => existsSync(one.socket) ? undefined : true)
    const text = readFileSync(join(dirname(logOf(one)), report), 'utf8')
    expect(JSON.parse(text)).toMatchObject({ error: { message: '[hidden] is broken' }, plugins: expect.arrayContaining(['loud active 1']) as unknown })
    expect(text).not.toContain('canary')
    expect((await one.hx(['logs', '--level', 'error'])).stdout).toContain(report)
  })
})
