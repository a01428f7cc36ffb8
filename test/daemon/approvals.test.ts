import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { exactRule } from '../../core/cli/always.js'
import { daemon, type RunningDaemon } from '../support/daemon.js'
import { until } from '../support/hx.js'

const FILES = { 'harness.config.yaml': 'agent: { askTimeout: 20s }\nplugins: [permission, tool-bash, model-openai]\n', 'a.txt': 'a', 'b.txt': 'b' }
const rm = (file: string) => ({ toolCalls: [{ name: 'bash', arguments: { command: `rm ${file}` } }] })
const pending = async ({ ask }: RunningDaemon) => (await ask('/v1/approvals')).body.approvals as { id: string; session: string; call: { arguments: { command: string } } }[]
const firstAsk = (one: RunningDaemon) => until(async () => (await pending(one))[0])
/** What the model read as the result of its last call. */
const lastResult = ({ model }: RunningDaemon): string => model.requests.at(-1)!.body.messages.at(-1).content

describe('an ask of a turn that nobody follows', () => {
  it('waits in hx approvals, shows the whole call, and runs it when it is allowed', async () => {
    const one = await daemon([rm('a.txt'), 'gone'], FILES)
    const session = (await one.hx(['agent', '--detach', 'clean'])).stdout.trim()
    const { id } = await firstAsk(one)
    expect((await one.hx(['approvals'])).stdout).toMatch(new RegExp(`${id.slice(0, 8)}.*permission asks:[^]*bash rm a.txt[^]*${session}`))
    expect(existsSync(join(one.folder, 'a.txt'))).toBe(true)
    expect((await one.hx(['sessions'])).stdout).toMatch(new RegExp(`${session}.* running `))       // and not interrupted, as its log alone would read
    expect(JSON.parse((await one.hx(['sessions', '--json'])).stdout)).toMatchObject({ sessions: [{ id: session, running: true }] })
    expect(await one.hx(['approvals', 'allow', id.slice(0, 8)])).toMatchObject({ code: 0, stdout: 'allowed: bash rm a.txt\n' })
    expect(await one.hx(['attach', session])).toMatchObject({ code: 0, stdout: 'gone\n' })
    expect(existsSync(join(one.folder, 'a.txt'))).toBe(false)
    expect((await one.hx(['sessions'])).stdout).toMatch(new RegExp(`${session}.* completed `))
  })
  it('takes one answer, the first, for that one call', async () => {
    const one = await daemon([rm('a.txt'), rm('b.txt'), 'done'], FILES)
    const session = (await one.hx(['agent', '--detach', 'clean'])).stdout.trim()
    const { id } = await firstAsk(one)
    const answers = await Promise.all([{ answer: 'once' }, { answer: 'denied' }, { answer: 'once' }].map(body => one.ask(`/v1/approvals/${id}`, { method: 'POST', body })))
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 404])
    const second = await firstAsk(one)                       // a yes to one call is none to another
    expect(second.call.arguments.command).toBe('rm b.txt')
    expect((await one.ask(`/v1/approvals/${id}`, { method: 'POST', body: { answer: 'once' } })).status).toBe(404)
    expect(await one.hx(['approvals', 'deny', second.id, 'keep', 'it'])).toMatchObject({ code: 0 })
    expect((await one.hx(['attach', session])).code).toBe(0)
    expect(lastResult(one)).toMatch(/denied by the user .*keep it/)
    expect([existsSync(join(one.folder, 'a.txt')), existsSync(join(one.folder, 'b.txt'))]).toEqual([false, true])
    expect((await one.hx(['approvals'])).stdout).toBe('nothing waits for an answer\n')
    expect(await one.hx(['approvals', 'allow', second.id])).toMatchObject({ code: 2 })
  })
  it('is denied when its time is over, or its turn is stopped', async () => {
    const one = await daemon([rm('a.txt'), 'not done', rm('a.txt')], { ...FILES, 'harness.config.yaml': FILES['harness.config.yaml'].replace('20s', '300ms') })
    const session = (await one.hx(['agent', '--detach', 'clean'])).stdout.trim()
    expect(await one.hx(['attach', session])).toMatchObject({ code: 3, stdout: 'not done\n' })
    expect(lastResult(one)).toContain('nobody could be asked')
    expect(await pending(one)).toEqual([])
  })
  it('is withdrawn with its turn', async () => {
    const one = await daemon([rm('a.txt')], FILES)
    const session = (await one.hx(['agent', '--detach', 'clean'])).stdout.trim()
    const { id } = await firstAsk(one)
    expect((await one.hx(['sessions', 'abort', session])).stderr).toContain('is stopped')
    await until(async () => (await pending(one)).length === 0)
    expect((await one.ask(`/v1/approvals/${id}`, { method: 'POST', body: { answer: 'once' } })).status).toBe(404)
    expect(existsSync(join(one.folder, 'a.txt'))).toBe(true)
  })
})

describe('an ask of a turn with clients', () => {
  it('reaches every attached client that can ask a person, and is settled for all by the first answer', async () => {
    const one = await daemon([rm('a.txt'), 'gone'], FILES)
    const session = (await one.hx(['agent', '--detach', 'clean'])).stdout.trim()
    const watch = async (): Promise<string[]> => {
      const seen: string[] = []
      for await (const { event, data } of one.follow(`/v1/sessions/${session}/events?interactive=1`)) {
        if (event === 'approval') { seen.push(`asked ${data.call.arguments.command}`); if (watchers.push(data.id) === 2) await one.ask(`/v1/approvals/${data.id}`, { method: 'POST', body: { answer: 'once' } }) }
        if (event === 'settled') seen.push('settled')
      }
      return seen
    }
    const watchers: string[] = []
    expect(await Promise.all([watch(), watch()])).toEqual([['asked rm a.txt', 'settled'], ['asked rm a.txt', 'settled']])
    expect(existsSync(join(one.folder, 'a.txt'))).toBe(false)
  })
  it('is shown to a client whose prompt waits behind that turn, after the name of its own run', async () => {
    const one = await daemon([rm('a.txt'), 'gone', 'second'], FILES)
    const session = (await one.hx(['agent', '--detach', 'clean'])).stdout.trim()
    const { id } = await firstAsk(one), seen: string[] = []
    for await (const { event, data } of one.follow('/v1/runs', {}, { prompt: 'and then', cwd: one.folder, session, interactive: true })) {
      if (['session', 'approval', 'settled', 'result'].includes(event)) seen.push(event)
      if (event === 'approval') await one.ask(`/v1/approvals/${id}`, { method: 'POST', body: { answer: 'once' } })
      if (event === 'result') expect(data).toMatchObject({ reason: 'completed', text: 'second' })
    }
    expect(seen).toEqual(['session', 'approval', 'settled', 'result'])
    expect(existsSync(join(one.folder, 'a.txt'))).toBe(false)
  })
  it('is denied at once when nobody could be asked, and when the last client that could be leaves', async () => {
    const one = await daemon([rm('a.txt'), 'no', rm('a.txt'), 'left'], FILES)
    expect(await one.hx(['agent', 'clean'])).toMatchObject({ code: 3, stdout: 'no\n' })
    const run = await one.open('/v1/runs', { method: 'POST', body: { prompt: 'clean', cwd: one.folder, interactive: true } })
    run.on('error', () => {}).resume()
    const { session } = await firstAsk(one)
    run.destroy()
    await until(() => one.model.requests.length === 4)
    expect(lastResult(one)).toContain('denied: nobody could be asked')
    expect((await one.hx(['attach', session])).stdout).toBe('left\n')
    expect(existsSync(join(one.folder, 'a.txt'))).toBe(true)
  })
})

describe('always', () => {
  it('writes an allow rule for this very command into the config, comments and all else stay, and it is in force', async () => {
    const config = 'plugins:\n  - name: permission   # policy\n    config: { otherwise: ask, allow: ["git status"] }\n  - tool-bash\n  - model-openai\n'
    const touch = (command: string) => ({ toolCalls: [{ name: 'bash', arguments: { command } }] })
    const one = await daemon([touch('touch c.txt'), 'made', touch('touch c.txt'), 'again', touch('touch d.txt'), 'other'], { 'harness.config.yaml': config })
    const session = (await one.hx(['agent', '--detach', 'touch'])).stdout.trim()
    const { id } = await firstAsk(one)
    const allowed = await one.hx(['approvals', 'allow', id, '--always'])
    expect(allowed).toMatchObject({ code: 0, stderr: expect.stringContaining('"touch c.txt" is allowed from now on') as unknown })
    expect(await one.hx(['attach', session])).toMatchObject({ code: 0, stdout: 'made\n' })
    expect(readFileSync(join(one.folder, 'harness.config.yaml'), 'utf8')).toBe(config.replace('["git status"]', '["git status", touch c.txt]'))
    await one.hx(['plugins', 'reload'])
    expect(await one.hx(['agent', 'touch'])).toMatchObject({ code: 0, stdout: 'again\n' })
    expect(await one.hx(['agent', 'touch'])).toMatchObject({ code: 3, stdout: 'other\n' })
  })
  it('is refused for what an ask rule stands before, and the ask goes on waiting', async () => {
    const one = await daemon([rm('a.txt'), 'gone'], FILES)
    await one.hx(['agent', '--detach', 'clean'])
    const { id } = await firstAsk(one)
    expect(await one.hx(['approvals', 'allow', id, '--always'])).toMatchObject({ code: 2, stderr: expect.stringContaining('no allow rule says exactly this') as unknown })
    expect(await pending(one)).toHaveLength(1)
  })
  it.each([
    ['npm test', true], ['npm run build -- --mode=fast', true], ['./run.sh a/b', true],
    ['rm *', false], ['echo $HOME', false], ['a; b', false], ['a && b', false], ['echo "x y"', false], ['A=1 b', false], ['cat ~/x', false], ['a > b', false], ['a\nb', false], ['a  b', false], ['', false],
  ])('says whether a rule can say %j to the letter', (command, can) => {
    expect(exactRule({ call: { id: 'c', name: 'bash', arguments: { command } }, reason: 'no rule allows it' })).toBe(can ? command : undefined)
  })
})
