import { existsSync, symlinkSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import * as permission from '../../plugins/permission/index.js'
import * as toolBash from '../../plugins/tool-bash/index.js'
import * as toolFs from '../../plugins/tool-fs/index.js'
import { folder } from '../support/folder.js'
import { pluginHost } from '../support/plugin-host.js'

const hosted = (config: object = {}, options: Parameters<typeof pluginHost>[1] = {}) => pluginHost([{ module: permission, config }, { module: toolFs }, { module: toolBash }], options)
const yes = async () => ({ answer: 'once' as const })

describe('permission', () => {
  it('blocks a command on the deny list and tells the model which rule', async () => {
    const host = await hosted()
    const { read, printed, result } = await host.call('bash', { command: 'sudo ls /' })
    expect(read).toBe(`blocked by plugin "permission": 'sudo' is on the deny list. The same call will be refused again; do not work around it.`)
    expect(printed).toEqual(["Blocked: 'sudo' is on the deny list"])
    expect(result).toMatchObject({ reason: 'completed', text: 'done', unanswered: false, stats: { blocked: 1 } })
  })
  it('refuses what needs a yes when nobody can be asked, and leaves the file', async () => {
    const host = await hosted({}, { files: { 'test.txt': 'x' } })
    const { read, printed, result } = await host.call('bash', { command: 'rm test.txt' })
    expect(read).toBe("denied: nobody could be asked ('rm *' is on the ask list: rm test.txt)")
    expect(printed).toEqual(["Permission required: 'rm *' is on the ask list: rm test.txt", 'Tool: bash(rm test.txt)', 'Non-interactive terminal; denied.'])
    expect([existsSync(host.folder.at('test.txt')), result.unanswered]).toEqual([true, true])
  })
  it('runs what a person says yes to, and says who said no', async () => {
    const host = await hosted({}, { files: { 'a.txt': 'x', 'b.txt': 'x' } })
    expect((await host.call('bash', { command: 'rm a.txt' }, { approver: yes })).printed, 'the person was shown the call already').toEqual([])
    const { read, printed } = await host.call('bash', { command: 'rm b.txt' }, { approver: async () => ({ answer: 'denied' }) })
    expect(read).toBe("denied by the user ('rm *' is on the ask list: rm b.txt)")
    expect(printed).toEqual([])
    expect([existsSync(host.folder.at('a.txt')), existsSync(host.folder.at('b.txt'))]).toEqual([false, true])
  })
  it('has no opinion on ordinary calls', async () => {
    const host = await hosted({}, { files: { 'a.txt': 'hello\n' } })
    const { results, printed, events } = await host.run([[{ name: 'read_file', arguments: { path: 'a.txt' } }, { name: 'bash', arguments: { command: 'cat a.txt' } }, { name: 'write_file', arguments: { path: 'sub/b.txt', content: 'x' } }]])
    expect(results.slice(0, 2).every(text => text.includes('hello'))).toBe(true)
    expect([printed, events.filter(event => event.type === 'decision' && event.kind !== 'slow'), existsSync(host.folder.at('sub/b.txt'))]).toEqual([[], [], true])
  })

  it('opens a path outside for the one call that a person allowed', async () => {
    const outside = folder({ 'notes.txt': 'from outside\n' })
    const host = await hosted()
    const asked: string[] = []
    const path = outside.at('notes.txt')
    const { read } = await host.call('read_file', { path }, { approver: async ({ reason }) => { asked.push(reason); return { answer: 'once' } } })
    expect(read).toContain('from outside')
    expect(asked).toEqual([`${path} is outside the workspace`])
    expect((await host.call('read_file', { path })).read).toBe(`denied: nobody could be asked (${path} is outside the workspace)`)
  })
  it('asks about each way out: dots, links, a pattern, a command', async () => {
    const outside = folder({ 'x.txt': 'x' })
    const host = await hosted()
    symlinkSync(outside.path, host.folder.at('link'))
    for (const [tool, args] of [['read_file', { path: '../x' }], ['read_file', { path: 'link/x.txt' }], ['write_file', { path: 'link/y.txt', content: '' }], ['glob', { pattern: `${outside.path}/*` }], ['grep', { pattern: 'x', path: outside.path }], ['grep', { pattern: 'x', glob: `${outside.path}/*` }], ['bash', { command: 'cat link/x.txt' }], ['bash', { command: `ls ${outside.path}` }], ['bash', { command: 'echo x > link/y.txt' }]] as const) {
      expect([tool, args, (await host.call(tool, args)).read]).toEqual([tool, args, expect.stringMatching(/^denied: nobody could be asked \(.* is outside the workspace\)$/)])
    }
    expect(existsSync(outside.at('y.txt'))).toBe(false)
  })
  it('refuses protected paths also to a person who says yes', async () => {
    const host = await hosted({}, { files: { 'harness.config.yaml': 'plugins: []\n', '.git/config': '' } })
    for (const [tool, args] of [['write_file', { path: 'harness.config.yaml', content: 'plugins: []' }], ['write_file', { path: '.git/hooks/pre-commit', content: '' }], ['bash', { command: 'echo x > harness.config.yaml' }], ['bash', { command: 'cp a .git/config' }]] as const) {
      expect([args, (await host.call(tool, args, { approver: yes })).read]).toEqual([args, expect.stringMatching(/^blocked by plugin "permission": .* is protected\./)])
    }
    expect((await host.call('bash', { command: 'cat harness.config.yaml' })).read).toContain('plugins')
  })
  it('lets a tool refuse in its own words what no yes could open', async () => {
    const host = await hosted()
    expect((await host.call('read_file', { path: '~/x' })).read).toContain('not expanded')
  })
  it('judges any tool that takes a command, whatever its name', async () => {
    const ran: string[] = []
    const shell = { module: { name: 'other-shell', apply: (ctx: import('../../core/api.js').Context) => { ctx.tools.register({ name: 'run_it', description: 'Runs it.', parameters: { type: 'object' }, execute: (args: { command: string }) => { ran.push(args.command); return 'ran' } } as never) } } }
    const host = await pluginHost([{ module: permission }, shell])
    expect((await host.call('run_it', { command: 'sudo ls' })).read).toContain("'sudo' is on the deny list")
    expect((await host.call('run_it', { cmd: 'sudo ls' })).read).toContain("'sudo' is on the deny list")
    expect((await host.call('run_it', { command: ['sudo', 'ls'] })).read).toContain("'sudo' is on the deny list")
    expect((await host.call('run_it', { command: ['sh', '-c', "echo 'a'; sudo ls"] })).read).toContain("'sudo' is on the deny list")
    expect((await host.call('run_it', { command: ['echo', "it's; sudo"] })).read).toBe('ran')
    expect(ran).toHaveLength(1)
  })

  it('adds the rules of the config to its own, or takes their place', async () => {
    const own = await hosted({ deny: ['git push *'], ask: ['npm publish *'], allow: [] })
    expect((await own.call('bash', { command: 'git -C . push' })).read).toContain("'git push *' is on the deny list")
    expect((await own.call('bash', { command: 'sudo ls' })).read).toContain("'sudo' is on the deny list")
    const bare = await hosted({ deny: ['echo no'], defaults: false })
    expect((await bare.call('bash', { command: 'echo no' })).read).toContain("'echo no' is on the deny list")
    expect((await bare.call('bash', { command: 'chmod 777 .' })).read).not.toContain('denied')
  })
  it('refuses a config with a rule that is none', () => {
    for (const deny of ['', 'a; b', 'a | b', 'x > y', '>', '$(x)', '* x']) expect([deny, permission.Config.safeParse({ deny: [deny] }).success]).toEqual([deny, false])
    for (const deny of ['sudo', '*', 'rm -rf /', '> /etc/*', 'git push * --force']) expect([deny, permission.Config.safeParse({ deny: [deny] }).success]).toEqual([deny, true])
    expect(permission.Config.safeParse({ denied: [] }).success).toBe(false)
  })
  it('says in a command what it would say, in two instances with two policies', async () => {
    const host = await pluginHost([{ module: permission }, { module: permission, id: 'strict', config: { otherwise: 'deny', deny: ['git push *'] } }, { module: toolBash }])
    const { result } = await host.run([])
    const say = (name: string, command: string) => host.command(name, command, result.session)
    expect(await say('permission', 'ls; sudo ls')).toBe("deny: 'sudo' is on the deny list\n  about  sudo ls\n  rule   sudo, in the shipped deny list (config.defaults)")
    expect(await say('permission', 'rm x')).toBe("ask: 'rm *' is on the ask list: rm x\n  about  rm x\n  rule   rm *, in the shipped ask list (config.defaults)")
    expect([await say('permission', 'ls'), await say('permission', 'cat /etc/passwd'), await say('strict', 'ls'), await say('strict', 'git push')])
      .toEqual(['allow: no rule concerns it', 'ask: /etc/passwd is outside the workspace\n  about  cat /etc/passwd', 'deny: no rule allows it: ls\n  about  ls', "deny: 'git push *' is on the deny list\n  about  git push\n  rule   git push *, in config.deny of \"strict\""])
    expect((await host.call('bash', { command: 'ls' })).read).toContain('blocked by plugin "strict": no rule allows it: ls')
  })
  it('says it for other tools and modes too, begins no session for that, and prints JSON for programs', async () => {
    const host = await hosted({ edits: 'ask' })
    const say = async (args: string) => (await host.command('permission', args, undefined as never)) as string
    expect(await say('--tool write_file a.txt')).toBe('ask: edits are asked about: a.txt')
    expect(await say('--tool write_file --mode accept-edits {"path":"a.txt"}')).toBe('allow: no rule concerns it')
    expect(await say('--tool read_file ../x')).toBe('ask: ../x is outside the workspace')
    expect(await say('--mode plan ls')).toBe('deny: in plan mode only read-only tools run, and "bash" is none')
    expect(await say('--mode plan --tool read_file a.txt')).toBe('allow: no rule concerns it')
    expect(await say('--mode yes rm x')).toContain(`allow: mode "yes" says yes to: 'rm *' is on the ask list: rm x`)
    expect(await say('--mode yes sudo x')).toMatch(/^deny: /)
    expect(JSON.parse(await say('--json -- rm x'))).toEqual({ kind: 'ask', reason: "'rm *' is on the ask list: rm x", command: 'rm x', rule: 'rm *', where: 'the shipped ask list (config.defaults)', tool: 'bash', mode: 'default', plugin: 'permission' })
    await expect(say('--mode yolo ls')).rejects.toThrow('there is no mode "yolo"')
    await expect(say('--tool write_file {')).rejects.toThrow(/arguments of "write_file" are no JSON/)
    await expect(say('')).rejects.toThrow(/^say what to judge/)
    expect(await host.run([])).toMatchObject({ result: { reason: 'completed' } })
  })
  it('asks about edits when the config says so, but not in the mode that accepts them', async () => {
    const host = await hosted({ edits: 'ask' })
    const write = (path: string, more = {}) => host.call('write_file', { path, content: 'x' }, more)
    expect((await write('a.txt')).read).toBe('denied: nobody could be asked (edits are asked about: a.txt)')
    for (const path of ['x://../a.txt', 'https://../../a.txt', '~x/../a.txt', './~/../a.txt']) expect((await write(path)).read).toMatch(/^denied: nobody could be asked/)
    expect((await host.call('write_file', { path: 'a.txt', content: 'x', command: 'true' })).read).toBe('denied: nobody could be asked (edits are asked about: a.txt)')
    await write('b.txt', { mode: 'accept-edits' })
    await write('../c.txt', { mode: 'accept-edits' })
    expect([existsSync(host.folder.at('a.txt')), existsSync(host.folder.at('b.txt')), existsSync(host.folder.at('../c.txt'))]).toEqual([false, true, false])
  })
  it('asks nobody about a call that a later guard blocks', async () => {
    const guard = { module: { name: 'guard', apply: (ctx: import('../../core/api.js').Context) => { ctx.on('agent/pre-tool-use', () => ({ kind: 'block', reason: 'not today' })) } } }
    const host = await pluginHost([{ module: permission }, guard, { module: toolBash }])
    const { read, printed } = await host.call('bash', { command: 'rm x' })
    expect([read.includes('plugin "guard": not today'), printed]).toEqual([true, []])
  })
  it('shows a person the call without what would steer the terminal', async () => {
    const host = await hosted()
    const { printed } = await host.call('bash', { command: 'rm \u001b[2J\u001b[1mx\u0007\ny' })
    expect(printed.join('\n')).not.toMatch(/[^\P{Cc}\n]/u)
  })
})
