/**
 * From a task to the calls that do it and the sentence that reports it. A job is asked for its next call with the results it has so far; it changes its plan once
 * where that can help (a name that was nearly right, a pattern that was too narrow), and never repeats or works around what was refused.
 */
import { count, cut, fileFacts, found, printed, proposal, refusal, some, type Result } from './results.js'
import type { Task } from './tasks.js'
import type { Call, Toolbox } from './toolbox.js'

export interface Job {
  /** What it is about to do, after "I": `read README.md`. */
  readonly doing: string
  /** Its calls only read, so they may go together with those of its neighbours. */
  readonly reads: boolean
  next(results: readonly Result[]): Call | undefined
  report(results: readonly Result[]): string
}

export function jobOf(task: Task, tools: Toolbox): Job {
  switch (task.kind) {
    case 'read': return readJob(task.path, tools)
    case 'list': return listJob(task.pattern, tools)
    case 'search': return searchJob(task, tools)
    case 'write': return single(`write ${task.path}`, tools.call('write', { path: task.path, content: task.content }), ({ content }) => sentence(content), 'a tool that writes files')
    case 'replace': return single(`replace "${cut(task.from, 40)}" with "${cut(task.to, 40)}" in ${task.path}`, tools.call('edit', { path: task.path, from: task.from, to: task.to, all: true }, ['path', 'from', 'to']), ({ content }) => sentence(content), 'a tool that edits files')
    case 'run': return commandJob(`run \`${task.command}\``, task.command, tools, ({ content }) => ran(task.command, content))
    case 'delete': return commandJob(`delete ${task.what}`, task.command, tools, () => `I deleted ${task.what}.`)
    case 'make-folder': return commandJob(`make the folder ${task.path}`, `mkdir -p '${task.path.replaceAll("'", `'\\''`)}'`, tools, () => `The folder ${task.path} is there.`)
    case 'time': return commandJob('ask for the time', 'date', tools, ({ content }) => `It is ${printed(content).text || 'a time that the command did not print'}.`)
    case 'talk': return talk(task.about === 'hello' ? `Hello! ${abilities(tools)}` : task.about === 'thanks' ? 'You are welcome.' : abilities(tools))
    case 'unknown': return talk(`I do not understand "${cut(task.clause, 120)}": I follow fixed rules. ${abilities(tools)}`)
  }
}

/** What can be asked for with these tools, in one paragraph. */
export function abilities(tools: Toolbox): string {
  const can = [
    ...(tools.has('read') || tools.has('run') ? ['"Read README.md"'] : []), ...(tools.has('list') ? ['"List src/*.js"'] : []), ...(tools.has('search') ? ['"Search for TODO in src"'] : []),
    ...(tools.has('write') ? ['"Create a file called notes.txt with hello"'] : []), ...(tools.has('edit') ? ['"Replace red with blue in notes.txt"'] : []), ...(tools.has('run') ? ['"Run `git status`"', '"Delete the file notes.txt"'] : []),
  ]
  return `${can.length === 0 ? 'No tool that I know is offered here, so I can only talk.' : `You can ask me, for example: ${can.join(', ')}; also several at once, joined by "and" or "then".`} For real understanding, set DEEPSEEK_API_KEY or OPENAI_API_KEY and leave out --offline.`
}

function readJob(path: string, tools: Toolbox): Job {
  const call = (file: string): Call | undefined => tools.call('read', { path: file }) ?? tools.call('run', { command: `cat -- '${file.replaceAll("'", `'\\''`)}'` })
  return {
    doing: `read ${path}`, reads: tools.call('read', { path }) !== undefined,
    next: results => results.length === 0 ? call(path) : results.length === 1 && results[0]!.outcome === 'failed' && proposal(results[0]!.content) !== undefined ? call(proposal(results[0]!.content)!) : undefined,
    report: results => {
      const last = results.at(-1)
      if (!last) return missing(`read ${path}`, 'a tool that reads files', tools)
      if (last.outcome !== 'ok') return unsuccessful(`read ${path}`, last)
      const other = results.length > 1 ? proposal(results[0]!.content) ?? path : path
      const content = 'command' in last.call.arguments ? printed(last.content).text : last.content
      return `${other === path ? '' : `There is no ${path}, so I read ${other}. `}${fileFacts(other, content)}`
    },
  }
}

function listJob(pattern: string, tools: Toolbox): Job {
  const call = (glob: string): Call | undefined => {
    const [, folder, rest] = /^((?:\/|~|\.\.)[^*?[\]{}]*)\/(.+)$/.exec(glob) ?? []
    return folder === undefined ? tools.call('list', { pattern: glob }) : tools.call('list', { pattern: rest, path: folder })
  }
  const wider = `**/${pattern.slice(pattern.lastIndexOf('/') + 1)}`
  return {
    doing: `list ${pattern}`, reads: true,
    next: results => results.length === 0 ? call(pattern) : results.length === 1 && results[0]!.outcome === 'ok' && !found(results[0]!.content) && !/^(?:\*\*\/|\/|~|\.\.)/.test(pattern) && wider !== '**/*' ? call(wider) : undefined,
    report: results => {
      const last = results.at(-1)
      if (!last) return missing(`list ${pattern}`, 'a tool that lists files', tools)
      if (last.outcome !== 'ok') return unsuccessful(`list ${pattern}`, last)
      const files = found(last.content)
      const none = results.length > 1 ? `No file matches ${pattern}` : ''
      if (!files) return `${none || `No file matches ${pattern}`}${none ? ', nor does one in any other folder' : ''}.`
      return `${none ? `${none}; elsewhere there ${files.lines.length === 1 ? 'is' : 'are'} ` : `${pattern} matches `}${count(files.lines.length, 'file')}: ${some(files.lines, 12)}${files.more ? ` (${files.more})` : ''}.`
    },
  }
}

function searchJob({ text, where }: { readonly text: string; readonly where?: string | undefined }, tools: Toolbox): Job {
  const [, regex] = /^\/(.+)\/$/.exec(text) ?? []
  const pattern = regex ?? text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  const place = where === undefined ? {} : /[*?[\]{}]/.test(where) ? { glob: where } : { path: where }
  return single(`search for "${cut(text, 60)}"${where === undefined ? '' : ` in ${where}`}`, tools.call('search', { pattern, ...place }), ({ content }) => {
    const hits = found(content)
    if (!hits) return `Nothing in ${where ?? 'the workspace'} contains "${cut(text, 60)}".`
    return `"${cut(text, 60)}" is in ${count(hits.lines.length, 'line')}:\n${hits.lines.slice(0, 8).map(line => `  ${cut(line, 160)}`).join('\n')}${hits.lines.length > 8 ? `\n  and ${hits.lines.length - 8} more` : ''}${hits.more ? `\n  (${hits.more})` : ''}`
  }, 'a tool that searches files', true)
}

function commandJob(doing: string, command: string, tools: Toolbox, report: (result: Result) => string): Job {
  return single(doing, tools.call('run', { command }), report, 'a tool that runs commands')
}

function single(doing: string, call: Call | undefined, report: (result: Result) => string, need: string, reads = false): Job {
  return {
    doing, reads,
    next: results => results.length === 0 ? call : undefined,
    report: ([result]) => !result ? missing(doing, need) : result.outcome === 'ok' ? report(result) : unsuccessful(doing, result),
  }
}

const talk = (text: string): Job => ({ doing: '', reads: true, next: () => undefined, report: () => text })

const missing = (doing: string, need: string, tools?: Toolbox): string => `I can not ${doing}: that takes ${need}, and none is offered${tools && tools.names.length > 0 ? ` (offered: ${some(tools.names, 8)})` : ''}.`

function unsuccessful(doing: string, { outcome, content, call }: Result): string {
  switch (outcome) {
    case 'refused': {
      const words = refusal(content)
      const nobody = /^denied: nobody/.test(words) ? ' Ask again in an interactive terminal, where you can say yes, or do it yourself.' : ''
      return `I did not ${doing}. It was ${words}. I accept that: I neither try it again nor look for a way around it.${nobody}`
    }
    case 'interrupted': return `I tried to ${doing}, but it was cut off; it may have run or not.`
    default: {
      const { text, end } = printed(content)
      return 'command' in call.arguments ? `I tried to ${doing}, and it failed${end ? ` (${end})` : ''}${text ? `: ${cut(text.replace(/\s+/g, ' '), 300)}` : ''}.` : `I could not ${doing}: ${cut(content.split('\n')[0]!, 300)}.`
    }
  }
}

function ran(command: string, content: string): string {
  const { text } = printed(content)
  if (!text) return `\`${command}\` ran and printed nothing.`
  const lines = text.split('\n')
  if (lines.length === 1) return `\`${command}\` printed: ${cut(lines[0]!, 300)}`
  return `\`${command}\` printed ${count(lines.length, 'line')}${lines.length > 10 ? ', of which the first' : ''}:\n${lines.slice(0, 10).map(line => `  ${cut(line, 160)}`).join('\n')}`
}

/** A tool's own words as a sentence. */
function sentence(content: string): string {
  const line = content.replace(/^note: plugin [^\n]*\n/, '').split('\n')[0]!.replace(/"([^"\s]+)"/g, '$1')
  return `${line.charAt(0).toUpperCase()}${cut(line.slice(1), 300)}${/[.!?]$/.test(line) ? '' : '.'}`
}
