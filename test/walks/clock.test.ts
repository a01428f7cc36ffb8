/** The clock of the machine is set while everything waits: nothing ends early or late, and what happened keeps its order. */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { endpoint } from '../support/daemon.js'
import { place, until } from '../support/hx.js'
import { startScriptedModel, type Script } from '../support/scripted-model.js'

const DAY = 86_400_000, YEAR = 365 * DAY
const CONFIG = 'agent: { askTimeout: 1h, prices: {} }\nplugins: [time-context, permission, retry, stats, tool-bash, model-openai]\n'

async function daemon(script: Script) {
  const model = await startScriptedModel(script), here = place({ 'harness.config.yaml': CONFIG, 'a.txt': 'a' })
  const clock = join(here.folder, '../clock'), env = { NODE_OPTIONS: `--require=${fileURLToPath(new URL('../support/processes/clock.cjs', import.meta.url))}`, HX_TEST_CLOCK: clock, OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'scripted' }
  const hx = (args: readonly string[]) => here.hx(args, { env })
  const begin = async () => {
    const process = here.start(['start', '--foreground', '--trust'], { env })
    await until(() => process.output().stderr.includes('listens on'))
    return process
  }
  const first = await begin()
  onTestFinished(async () => { await hx(['stop']); await model.close() })
  return { ...here, model, hx, first, begin, setClock: (ms: number) => { writeFileSync(clock, String(ms)) } }
}
const lines = (text: string) => text.trim().split('\n').map(line => JSON.parse(line) as { type: string; seq: number; elapsedMs?: number; role?: string; source?: { id?: string }; ts: string })

describe('a clock that is set by a day or a year, forwards and back,', () => {
  it('lets a turn go on that waits for a model, a repeated request, a tool or a person: no limit passes, and its log and its trace are in order', async () => {
    const jumps = [DAY, -YEAR, YEAR, -DAY, 0, DAY]
    const off: number[] = []
    const jump = () => { const ms = jumps[off.length % jumps.length]!; off.push(ms); one.setClock(ms) }
    const replies = [{ status: 429, headers: { 'retry-after': '1' } }, { toolCalls: [{ name: 'bash', arguments: { command: 'sleep 0.3; echo slept' } }] }, { toolCalls: [{ name: 'bash', arguments: { command: 'rm a.txt' } }] }, { text: 'all is done' }]
    const one = await daemon(async (_, index) => { jump(); return replies[index]! })
    const began = performance.now()
    const session = (await one.hx(['agent', '--detach', 'go'])).stdout.trim()
    const id = await until(async () => {
      if (/is quarantined|late|timed out/.test(one.first.output().stderr)) throw new Error(one.first.output().stderr)
      return /^(\w{8}) .*permission asks/m.exec((await one.hx(['approvals'])).stdout)?.[1]
    })
    for (const ms of [YEAR, -YEAR]) {
      one.setClock(ms)
      expect((await one.hx(['approvals'])).stdout).toMatch(/bash rm a\.txt[^]*, for \d/)
    }
    expect((await one.hx(['approvals', 'allow', id])).code).toBe(0)
    expect(await one.hx(['attach', session])).toMatchObject({ code: 0, stdout: 'all is done\n' })
    const took = performance.now() - began
    const log = lines((await one.hx(['sessions', 'show', '--json', session])).stdout)
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index + 1))
    expect(log.some(({ ts }, n) => n > 0 && ts < log[n - 1]!.ts)).toBe(true)                       // the clock did go back
    for (const { type, elapsedMs } of log) if (elapsedMs !== undefined) expect([type, elapsedMs >= 0 && elapsedMs < took]).toEqual([type, true])
    expect(log.filter(({ type, source }) => type === 'message' && source?.id === 'time-context').length).toBeLessThanOrEqual(one.model.requests.length)
    const { stdout: trace } = await one.hx(['trace', session])
    expect(trace).toContain('rm a.txt')
    expect(trace).not.toMatch(/-\d+(?:\.\d+)? (?:ms|s)\b|\d d \d+ h/)
  })
  it('leaves a daemon as it was: it serves, counts wrong tokens, and starts again after a crash', async () => {
    const one = await daemon(() => 'hi')
    const { socket } = endpoint(one)
    const wrong = () => new Promise<number>((resolve, reject) => {
      request({ socketPath: socket, path: '/v1/status', agent: false, headers: { authorization: 'Bearer wrong' } }, answer => { answer.resume(); resolve(answer.statusCode!) }).on('error', reject).end()
    })
    const answers: number[] = []
    for (const ms of [DAY, -YEAR, YEAR]) {
      one.setClock(ms)
      expect((await one.hx(['agent', 'hi'])).stdout).toBe('hi\n')
      for (let n = 0; n < 4; n++) answers.push(await wrong())
    }
    expect(answers).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429])                     // ten within a minute, whatever the clock says
    one.first.child.kill('SIGKILL')
    await one.first.ended
    one.setClock(-DAY)
    const again = await one.begin()
    expect((await one.hx(['agent', 'hi'])).stdout).toBe('hi\n')
    const sessions = JSON.parse((await one.hx(['sessions', '--json'])).stdout) as { sessions: { lastReason: string }[] }
    expect(sessions.sessions.map(({ lastReason }) => lastReason)).toEqual(Array.from({ length: 4 }, () => 'completed'))
    const logs = join(one.env['HX_HOME']!, 'state/logs'), log = readFileSync(join(logs, readdirSync(logs).find(name => name.endsWith('.log'))!), 'utf8')
    expect(log.match(/listens on/g)).toHaveLength(2)
    again.child.kill('SIGTERM')
    expect((await again.ended).code).toBe(0)
  })
})
