/** Who looks into a process that runs already. Pure. */
/** Debuggers and tracers look into a process that runs already, by its number. Of what they start themselves no option is theirs. */
export function attaches(name: string, rest: readonly string[]): boolean {
  if (/^(?:gcore|reptyr)$/.test(name)) return rest.some(word => !word.startsWith('-'))
  if (!/^(?:gdb|lldb|[sl]trace|perf|py-spy|rbspy)$/.test(name)) return false
  const end = rest.findIndex((word, i) => /^(?:--|--args)$/.test(word) || (/^[sl]trace$/.test(name) && !word.startsWith('-') && !/^-[oesEuPSaXIbO]$/.test(rest[i - 1] ?? '')))
  const own = end < 0 ? rest : rest.slice(0, end)
  return own.some(word => /^(?:-p\d*|--?pid\b.*|--attach-pid.*|--attach\b.*)$/.test(word) || (/^[gl]l?db$/.test(name) && /^(?:attach|process attach)\b/.test(word))) || (name === 'gdb' && own.filter(word => !word.startsWith('-')).slice(1).some(word => /^\d+$/.test(word)))
}
