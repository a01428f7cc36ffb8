/**
 * From a prompt in plain English to tasks. Pure rules, tried in order; what no rule fits is a task of its own kind, so that nothing is passed over in silence.
 * Quoted text is taken as it stands: it is put aside before the prompt is cut into clauses, and set back into the fields of a task.
 */
export type Task =
  | { readonly kind: 'read'; readonly path: string }
  | { readonly kind: 'list'; readonly pattern: string }
  | { readonly kind: 'search'; readonly text: string; readonly where?: string | undefined }
  | { readonly kind: 'write'; readonly path: string; readonly content: string }
  | { readonly kind: 'replace'; readonly path: string; readonly from: string; readonly to: string }
  | { readonly kind: 'run'; readonly command: string }
  | { readonly kind: 'delete'; readonly command: string; readonly what: string }
  | { readonly kind: 'make-folder'; readonly path: string }
  | { readonly kind: 'time' }
  | { readonly kind: 'talk'; readonly about: 'hello' | 'help' | 'thanks' }
  | { readonly kind: 'unknown'; readonly clause: string }

const VERB = 'read|open|show|print|cat|display|view|list|find|search|grep|look|run|execute|create|make|write|append|add|save|put|delete|remove|erase|clean|replace|change|edit|summari[sz]e|explain|describe|count|check|tell|what|try|say'
const BREAK = new RegExp(`\\s*(?:;\\s+|(?<!\\b\\d)[.!?]\\s+(?=[A-Z\\u0000])|\\n+\\s*(?:[-*•]|\\d+[.)])?\\s*(?=(?:${VERB})\\b)|[.,]?\\s+(?:and\\s+then|then|and\\s+also|and|also|afterwards|after\\s+that),?\\s+(?=(?:please\\s+)?(?:${VERB})\\b)|,\\s+(?=(?:${VERB})\\b))`, 'gi')
const POLITE = /^(?:(?:[-*•]|\d+[.)])\s+|use\s+(?:the\s+)?\S+(?:\s+tool)?\s+to\s+|(?:please|kindly|now|next|first|finally|also|then|and|so|well|ok(?:ay)?)[,!:]?\s+|(?:hi|hello|hey)(?:\s+there)?[,!.]?\s+(?=\S+\s)|(?:can|could|would|will)\s+you\s+|i(?:'d|\s+would)\s+like\s+you\s+to\s+|i\s+(?:want|need)\s+you\s+to\s+|(?:try|attempt)\s+to\s+|try\s+(?:and\s+)?(?=run|exec)|go\s+ahead\s+and\s+|let'?s\s+|help\s+me\s+(?:to\s+)?)/i
const EXTENSION: Readonly<Record<string, string>> = { javascript: 'js', typescript: 'ts', python: 'py', markdown: 'md', text: 'txt', yaml: 'yaml', yml: 'yml', json: 'json', js: 'js', ts: 'ts', tsx: 'tsx', jsx: 'jsx', mjs: 'mjs', py: 'py', md: 'md', txt: 'txt', html: 'html', css: 'css', go: 'go', rs: 'rs', rust: 'rs', java: 'java', c: 'c', sh: 'sh', shell: 'sh', toml: 'toml', log: 'log', csv: 'csv' }

interface Quoted { readonly inner: string; readonly whole: string }

/** The tasks of a prompt, in order. */
export function tasksOf(prompt: string): Task[] {
  const quoted: Quoted[] = []
  const bare = prompt.replaceAll('\0', '').replace(/```\w*\n?([\s\S]*?)```|`([^`]+)`|"([^"]*)"|“([^”]*)”|(?<!\w)'([^'\n]*)'(?!\w)/g, (...groups) => {
    quoted.push({ inner: (groups.slice(1, 6) as (string | undefined)[]).find(part => part !== undefined) ?? '', whole: String(groups[0]) })
    return `\0${quoted.length - 1}\0`
  })
  const tasks: Task[] = []
  let path: string | undefined
  for (const clause of bare.split(BREAK).map(plain).filter(part => /[\p{L}\p{N}$!\0]/u.test(part))) {
    const words = new Clause(clause, quoted, path)
    for (const task of words.tasks()) add(tasks, task)
    path = words.path
  }
  return tasks
}

/** A file that is created and then filled is written once; "tell me about it" after a task is what its report does anyway. */
function add(tasks: Task[], task: Task): void {
  const last = tasks.at(-1)
  if (last?.kind === 'write' && task.kind === 'write' && last.path === task.path && last.content === '') tasks[tasks.length - 1] = task
  else if (task.kind === 'unknown' && last && last.kind !== 'unknown' && /^(?:tell|explain|summari[sz]e|describe|show|print|say|report)\b(?!.*[/.]\w)/i.test(task.clause)) return
  else tasks.push(task)
}

function plain(clause: string): string {
  let text = clause.trim(), before
  do { before = text; text = text.replace(POLITE, '') } while (text !== before)
  return text.replace(/(?<=[^\s.])[.!?]+$/, '').replace(/\s+please$/i, '')
}

/** One clause. `path` is the file spoken of last, which "it" means. */
class Clause {
  path: string | undefined
  readonly #text: string
  readonly #quoted: readonly Quoted[]
  constructor(text: string, quoted: readonly Quoted[], path: string | undefined) {
    this.#text = text
    this.#quoted = quoted
    this.path = path
  }

  tasks(): Task[] {
    for (const rule of [this.#run, this.#time, this.#delete, this.#folder, this.#write, this.#replace, this.#search, this.#list, this.#read, this.#talk]) {
      const tasks = rule.call(this)
      if (tasks) return tasks
    }
    return [{ kind: 'unknown', clause: this.#raw(this.#text) }]
  }

  #run(): Task[] | undefined {
    const [, shell, rest] = this.#match(/^(?:([$!])\s*|(?:run|running|execute|executing|exec|launch|invoke)\s+)(.+)$/is) ?? []
    if (rest === undefined) return undefined
    const command = shell ? rest : rest.replace(/^(?:the\s+)?(?:shell\s+|bash\s+)?command\s*:?\s+/i, '').replace(/^(?:the\s+)?(?:unit\s+)?tests?$/i, 'npm test').replace(/\s+(?:command|for me)$/i, '')
    return [{ kind: 'run', command: this.#raw(command) }]
  }
  #time(): Task[] | undefined {
    return this.#match(/\bwhat(?:'s|\s+is)?\s+(?:the\s+)?(?:current\s+)?(?:time|date|day)\b|\b(?:current|today'?s)\s+(?:time|date)\b|\bwhat\s+day\b/i) && !this.#match(/\0|\/|\.\w/) ? [{ kind: 'time' }] : undefined
  }
  #delete(): Task[] | undefined {
    const temporary = this.#match(/^(?:delete|remove|erase|clean(?:\s+up)?)\s+(?:all\s+)?(?:the\s+|my\s+)?(?:temporary|temp|tmp)\s+files?(?:\s+(?:in|from|under|inside)\s+(\S+))?$/i)
    if (temporary) {
      const folder = this.#raw(temporary[1] ?? '/tmp').replace(/(?<=.)\/+$/, '')
      return [{ kind: 'delete', command: `rm -f ${word(`${folder}/*.tmp`)}`, what: `the temporary files (*.tmp) in ${folder}` }]
    }
    const [, rest] = this.#match(/^(?:delete|remove|erase|unlink|rm|trash)\s+(?:-\w+\s+)*(.+)$/is) ?? []
    if (rest === undefined) return undefined
    const [, kind, where] = /^(?:all|every)\s+(?:the\s+)?(?:(\S+)\s+)?files?\s+(?:in|from|under|inside)\s+(.+)$/i.exec(rest) ?? []
    if (where !== undefined) {
      const folder = this.#paths(where, true)[0]
      const extension = kind === undefined ? '' : `.${EXTENSION[kind.replace(/^\*?\./, '').toLowerCase()] ?? kind.replace(/^\*?\./, '')}`
      if (folder !== undefined) return [{ kind: 'delete', command: `rm ${word(`${folder}/*${extension}`)}`, what: `the files ${folder}/*${extension}` }]
    }
    const paths = this.#paths(rest, /\b(?:files?|folders?|director(?:y|ies))\b/i.test(rest))
    if (paths.length === 0) return undefined
    return [{ kind: 'delete', command: `rm ${/\b(?:folder|directory|directories|folders)\b/i.test(rest) || paths.some(path => path.endsWith('/')) ? '-r ' : ''}${paths.map(word).join(' ')}`, what: paths.join(', ') }]
  }
  #folder(): Task[] | undefined {
    const [, rest] = this.#match(/^(?:create|make|add)\s+(?:a\s+|an\s+|the\s+)?(?:new\s+)?(?:empty\s+)?(?:folder|directory|dir)\s+(.+)$/i) ?? []
    const path = rest === undefined ? undefined : this.#paths(rest, true)[0]
    return path === undefined ? undefined : [{ kind: 'make-folder', path }]
  }
  #write(): Task[] | undefined {
    const create = this.#match(/^(?:create|make|write|add|save)\s+(?:me\s+)?(?:a\s+|an\s+|the\s+)?(?:new\s+|empty\s+|text\s+)*(?:file\s+(?:called\s+|named\s+)?)?(\S+)(?:\s+file)?(?:\s*,?\s+(?:with|containing|which\s+(?:says|contains)|that\s+(?:says|contains)|saying)\b\s*(.*))?$/is)
    const path = create ? this.#paths(create[1]!, /\bfile\b/i.test(this.#text))[0] : undefined
    if (create && path !== undefined) return [{ kind: 'write', path, content: lines(this.#raw((create[2] ?? '').replace(/^(?:the\s+)?(?:following\s+)?(?:contents?|text|lines?|words?|body|in\s+it)?\s*(?:of\b)?\s*:?\s*/i, '').replace(/\s+in\s+it$/i, ''))) }]
    const [, verb, what, to] = this.#match(/^(write|save|put|append|add)\s+(.+?)\s+(?:to|into|in|as)\s+(?:the\s+end\s+of\s+)?(?:a\s+|the\s+)?(?:new\s+)?(?:file\s+)?(?:called\s+|named\s+)?(\S+)$/is) ?? []
    const target = to === undefined ? undefined : this.#paths(to, true)[0]
    if (what === undefined || target === undefined) return undefined
    const content = lines(this.#raw(what.replace(/^(?:the\s+)?(?:text|line|words?)\s+(?=\S)/i, '')))
    return /append|add/i.test(verb!) ? [{ kind: 'run', command: `printf '%s\\n' ${quote(content.replace(/\n$/, ''))} >> ${word(target)}` }] : [{ kind: 'write', path: target, content }]
  }
  #replace(): Task[] | undefined {
    const after = this.#match(/^(?:(?:edit|change|open|in)\s+(\S+?)\s*[:,]?\s+(?:and\s+|to\s+)?)?(?:replace|change|rename|swap)\s+(?:all\s+|every\s+)?(.+?)\s+(?:with|by|to|for|into)\s+(.+?)(?:\s+(?:in|inside|of)\s+(?:the\s+)?(?:file\s+)?(\S+))?$/is)
    if (!after) return undefined
    const [, before, from, to, behind] = after
    const path = before ?? behind ? this.#paths((behind ?? before)!, true)[0] : this.path
    return path === undefined ? undefined : [{ kind: 'replace', path: this.path = path, from: this.#raw(from!), to: this.#raw(to!) }]
  }
  #search(): Task[] | undefined {
    const found = this.#match(/^(?:grep|search|look|find|where\s+is)\s+(?:for\s+)?(?:all\s+|every\s+|the\s+|any\s+)*(?:occurrences?\s+of\s+|mentions?\s+of\s+|words?\s+|texts?\s+|strings?\s+|patterns?\s+)?(.+?)(?:\s+(?:in|within|inside|under|across|through)\s+(.+))?$/is)
    if (!found) return undefined
    const [, what, where] = found
    const for_ = /^(?:grep|search|look)\b|\bfor\b|occurrence|mention|\bword|\btext\b|string|pattern/i.test(this.#text)
    if (!for_ && (!/^\0\d+\0$/.test(what!) || isGlob(this.#raw(what!))) || /^(?:at|into)\b/i.test(what!) || /\bfiles?$/i.test(what!)) return undefined
    const place = where === undefined || /^(?:all\s+(?:the\s+)?files|every\s+file|the\s+(?:whole\s+)?(?:project|code|codebase|repo(?:sitory)?|workspace)|here|(?:this|the\s+current)\s+(?:folder|directory|project))$/i.test(where) ? undefined : this.#paths(where, true)[0]
    return [{ kind: 'search', text: this.#raw(what!), where: place }]
  }
  #list(): Task[] | undefined {
    const [, rest] = this.#match(/^(?:list|ls|find|glob|enumerate|show|display|give\s+me|which|what)\b\s*(.*)$/is) ?? []
    if (rest === undefined) return undefined
    const bare = /^(?:ls|list)\b/i.test(this.#text)
    const paths = this.#paths(rest, bare && /^(?:the\s+)?\S+$/i.test(rest))
    const globs = paths.filter(isGlob)
    if (globs.length > 0) return globs.map(pattern => ({ kind: 'list', pattern }))
    const mentions = /\b(?:files?|folders?|director(?:y|ies)|entries|everything|contents?)\b/i.test(rest)
    if (!mentions && !(bare && (rest === '' || paths.length > 0)) || /\bcontents?\s+of\b/i.test(rest) && !/\b(?:folder|directory)\b/i.test(rest)) return undefined
    const kind = /(?:^|\s)(?:\*?\.)?(\w+)\s+files?\b/i.exec(rest)?.[1]?.toLowerCase()
    const [, named] = /\b(?:in|under|inside|of|from)\s+(?:the\s+)?(?:folder\s+|directory\s+)?(?!(?:this|the|current|here)\b)(\S+)(?:\s+(?:folder|directory))?$/i.exec(rest) ?? []
    const folder = named === undefined ? bare ? paths.find(path => !isGlob(path)) : undefined : this.#paths(named, true)[0]
    const name = kind !== undefined && EXTENSION[kind] ? `*.${EXTENSION[kind]}` : '*'
    const deep = /\b(?:all|every|recursive(?:ly)?)\b/i.test(rest)
    return [{ kind: 'list', pattern: `${folder === undefined || folder === '.' ? '' : `${folder.replace(/\/+$/, '')}/`}${deep ? '**/' : ''}${name}` }]
  }
  #read(): Task[] | undefined {
    const [, rest] = this.#match(/^(?:read|open|show|print|cat|display|view|summari[sz]e|explain|describe|look\s+(?:at|into|in)|check|count|tell\s+me|what|how\s+many\s+lines|give\s+me)(?:'s)?\b\s*(.*)$/is) ?? []
    if (rest === undefined) return undefined
    // "tell me what it says" is what the report of the task before does anyway.
    if (/^(?:tell|what|explain|summari[sz]e|describe)\b/i.test(this.#text) && /\b(?:it|that|them)\b/i.test(rest) && this.path !== undefined && this.#paths(rest.replace(/\b(?:it|that|them)\b/gi, ''), false).length === 0) return []
    const paths = this.#paths(rest, /^(?:the\s+)?file\s+\S+$/i.test(rest))
    return paths.length === 0 ? undefined : paths.map(path => isGlob(path) ? { kind: 'list', pattern: path } : { kind: 'read', path })
  }
  #talk(): Task[] | undefined {
    if (this.#match(/^(?:hi|hello|hey|good\s+(?:morning|day|evening)|greetings)\b/i)) return [{ kind: 'talk', about: 'hello' }]
    if (this.#match(/^(?:help|\?|what\s+can\s+you\s+do|who\s+are\s+you|what\s+are\s+you|how\s+do\s+you\s+work)/i)) return [{ kind: 'talk', about: 'help' }]
    return this.#match(/^(?:thanks|thank\s+you|thx|great|good|nice|ok(?:ay)?|bye)\b/i) ? [{ kind: 'talk', about: 'thanks' }] : undefined
  }

  #match(pattern: RegExp): RegExpExecArray | null { return pattern.exec(this.#text) }
  /** Text with the quoted parts set back; what is quoted as a whole loses its quotes, as `echo "a b"` must not. */
  #raw(text: string): string {
    const [, whole] = /^\s*\0(\d+)\0\s*$/.exec(text) ?? []
    return whole !== undefined ? this.#quoted[Number(whole)]?.inner ?? '' : text.replace(/\0(\d+)\0/g, (_, place: string) => this.#quoted[Number(place)]?.whole ?? '').trim()
  }
  /** The paths in a piece of text; with `any`, every word that is no filler is one. */
  #paths(text: string, any: boolean): string[] {
    const found: string[] = text.split(/\s*,\s*|\s+/).filter(part => part !== '').flatMap(part => {
      const bare = part.replace(/^[(<]+/, '').replace(/[,:;!?)>]+$/, '').replace(/(?<=[^.])\.$/, '')
      if (/^(?:it|that|them)$/i.test(bare)) return this.path === undefined ? [] : [this.path]
      if (/\0/.test(bare)) return [this.#raw(bare)]
      const filler = /^(?:the|a|an|of|in|to|and|or|me|my|file|files|folder|folders|directory|directories|called|named|contents?|whole|entire|full|all|is|does|says?|has|have|are|lines?|please|for|with|inside|what|there|here|about|mean|do)$/i.test(bare)
      return bare !== '' && !filler && (any || looksLikePath(bare)) ? [bare] : []
    }).filter(path => path !== '')
    this.path = found.at(-1) ?? this.path
    return found
  }
}

const isGlob = (path: string): boolean => /[*?[\]{}]/.test(path)
const looksLikePath = (text: string): boolean => /^(?:~|\.{0,2})\/|[^/\s]\/|[^.\s]\.[A-Za-z]\w*$|^\.\w|\*|^\.{1,2}$/.test(text) || /^(?:readme|license|makefile|dockerfile|changelog)$/i.test(text)
const lines = (content: string): string => content === '' || content.endsWith('\n') ? content : `${content}\n`
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
/** A path as a word of the shell; its wildcards stay wild. */
const word = (path: string): string => {
  const safe = path.startsWith('-') ? `./${path}` : path
  return /^[\w@%+=:,./*?~[\]-]+$/.test(safe) ? safe : quote(safe)
}
