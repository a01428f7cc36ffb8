/**
 * The rule language: the words of one simple command with `*`. Pure; knows no list and no file.
 * Rules that refuse match generously, rules that allow match to the letter; what can't be known before the command runs is `maybe`.
 *
 * `sudo`         the command, whatever follows, by any path (`/usr/bin/sudo`)
 * `rm -rf /`     these flags in any spelling and order (`-fr`, `-r -f`, `--recursive --force`), and this operand anywhere
 * `git push *`   plain words before the first `*` come first, behind options only
 * `dd if=*`      `*` inside a word is any text; alone it is any number of words
 * `> /etc/*`     a redirection that writes there (`<` one that reads)
 */
import { basename, GLOB, HOLE, isOpen } from './word.js'

export interface Rule { readonly text: string; readonly words: readonly string[] }
export type Match = 'yes' | 'maybe' | 'no'

/** Undefined when the text is no rule. */
export function parseRule(text: string): Rule | undefined {
  const words = text.trim().split(/\s+/)
  const redirection = words[0] === '>' || words[0] === '<'
  return words[0] === '' || words[0] === '*' && words.length > 1 || words.some((word, i) => /[;&|()`\0\u0001]/.test(word) || (/^[<>]/.test(word) && !(i === 0 && redirection))) || (redirection && words.length !== 2) ? undefined : { text: words.join(' '), words }
}

/** Does a deny or ask rule concern this command? */
export function concerns(rule: Rule, words: readonly string[]): Match {
  const [name = '', ...wanted] = rule.words
  const own = named(name, words[0] ?? '')
  if (own === 'no') return 'no'
  const { flags, operands, open } = partsOf(words.slice(1))
  const firstStar = wanted.indexOf('*')
  const plain = wanted.filter((word, i) => isPlain(word) && (firstStar < 0 || i < firstStar))
  const matches = wanted.map((word): Match => {
    if (word === '*' || plain.includes(word)) return 'yes'
    if (isFlag(word)) return hasFlag(flags, word) ? 'yes' : open ? 'maybe' : 'no'
    return best(operands.map(operand => wordMatches(word, operand)), open)
  })
  return worst([own, leads(plain, words.slice(1)), ...matches])
}

/** Does an allow rule cover this command, word by word? */
export function covers(rule: Rule, words: readonly string[]): boolean {
  // reach[j]: the rule's words so far match the first j words.
  let reach = words.map((_, j) => j === 0).concat(words.length === 0)
  for (const wanted of rule.words) {
    reach = wanted === '*'
      ? reach.map((_, j) => reach.slice(0, j + 1).some(Boolean))
      : reach.map((_, j) => j > 0 && reach[j - 1]! && wordMatches(wanted, words[j - 1]!) === 'yes')
  }
  return reach[words.length]!
}

const isFlag = (word: string): boolean => /^-./.test(word)
const isPlain = (word: string): boolean => /^[A-Za-z][\w:-]*$/.test(word)

function named(rule: string, word: string): Match {
  return wordMatches(rule.toLowerCase(), (rule.includes('/') ? word : basename(word)).toLowerCase())      // file systems may ignore case
}

/** Flags, operands, and whether a word may turn out to be any number of either. */
function partsOf(words: readonly string[]): { flags: readonly string[]; operands: readonly string[]; open: boolean } {
  const end = words.indexOf('--'), before = end < 0 ? words : words.slice(0, end), after = end < 0 ? [] : words.slice(end + 1)
  return { flags: before.filter(isFlag), operands: [...before.filter(word => !isFlag(word)), ...after], open: words.some(word => word.startsWith(HOLE) || (isFlag(word) && isOpen(word))) }
}
/** Short flags by letter, clustered or not, upper or lower case; a long one answers to its first letter and may be cut short. */
function hasFlag(flags: readonly string[], wanted: string): boolean {
  const isLong = wanted.startsWith('--')
  const letters = isLong ? [wanted[2]!] : [...wanted.slice(1)]
  const whole = (flag: string) => flag === wanted || (isLong && flag.length > 3 && wanted.startsWith(flag.replace(/=.*$/, '')))
  return flags.some(whole) || letters.every(letter => flags.some(flag => flag.startsWith('--') ? !isLong && flag[2]?.toLowerCase() === letter.toLowerCase() : flag.slice(1).toLowerCase().includes(letter.toLowerCase())))
}
/** Do `plain` come first, behind nothing but options and the values that these may take? */
function leads(plain: readonly string[], words: readonly string[]): Match {
  let at = 0, found: Match = 'yes', optional = false
  for (const word of words) {
    if (at === plain.length) return found
    if (isFlag(word)) { optional = true; continue }
    if (word === plain[at]) { at++; optional = false; continue }
    if (isOpen(word)) { found = 'maybe'; if (wordMatches(plain[at]!, word) === 'maybe') at++; continue }
    if (!optional) return 'no'
    optional = false
  }
  return at === plain.length ? found : words.some(word => word.startsWith(HOLE)) ? 'maybe' : 'no'
}

/** Matches one word. A pattern that begins with `/` is a path: `//`, `/.` and `/*` are the same as `/`. */
export function wordMatches(pattern: string, word: string): Match {
  const text = pattern.startsWith('/') ? tidy(word) : word
  if (pattern === '/' && (text === `/${GLOB}` || text === `/.${GLOB}`)) return 'yes'
  if (!isOpen(text)) return reaches(pattern, text) ? 'yes' : 'no'
  // A character that no pattern spells out: only a `*` covers it, whatever the hole will be.
  if (reaches(pattern, text.replaceAll(/[\0\u0001]/g, '\uFFFF'))) return 'yes'
  return reaches(pattern, text) ? 'maybe' : 'no'
}
/** Could some text match both? `*` in the pattern and a hole in the text stand for any text. Walks the text with the set of reachable places in the pattern. */
function reaches(pattern: string, text: string): boolean {
  const closed = (places: Set<number>) => { for (const place of places) if (pattern[place] === '*') places.add(place + 1); return places }
  let places = closed(new Set([0]))
  for (const char of text) {
    const next = new Set<number>()
    if (char === HOLE || char === GLOB) for (let place = Math.min(...places); place <= pattern.length; place++) next.add(place)
    else for (const place of places) if (pattern[place] === '*') next.add(place); else if (pattern[place] === char) next.add(place + 1)
    if (next.size === 0) return false
    places = closed(next)
  }
  return places.has(pattern.length)
}
/** A path without `//`, `/./`, `/..` at the root and trailing `/`. */
function tidy(word: string): string {
  if (!word.startsWith('/')) return word
  const parts: string[] = []
  for (const part of word.split('/')) if (part === '..') parts.pop(); else if (part !== '' && part !== '.') parts.push(part)
  return `/${parts.join('/')}`
}

const RANK: Readonly<Record<Match, number>> = { no: 0, maybe: 1, yes: 2 }
const worst = (matches: readonly Match[]): Match => matches.reduce((low, match) => RANK[match] < RANK[low] ? match : low, 'yes')
const best = (matches: readonly Match[], open: boolean): Match => matches.reduce((high, match) => RANK[match] > RANK[high] ? match : high, open ? 'maybe' : 'no')
