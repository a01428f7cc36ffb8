/** What the other files say words with: holes, globs, names. Pure. */

/** Stands in a word for what only the running shell knows: a variable, a substitution, a brace expansion. */
export const HOLE = '\0'
/** Stands in a word for a glob: some name in that folder. */
export const GLOB = '\u0001'
export const isOpen = (word: string): boolean => /[\0\u0001]/.test(word)
/** A word as a person reads it. */
export const readable = (word: string): string => word.replaceAll(HOLE, '…').replaceAll(GLOB, '*')
/** What a table says of a name that somebody else chose: nothing, of one that every object has. */
export const listed = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined => Object.hasOwn(table, name) ? table[name] : undefined
export const basename = (word: string): string => word.slice(word.lastIndexOf('/') + 1)
