/**
 * Words of the file tools: counts, sizes, and what an error of the file system means, told so that a model can act on it.
 * Pure; knows no file. Errors of the workspace are worded by core and pass through untouched.
 */
import { messageOf } from 'harnessx'

/** `1 line`, `2,000 lines`. */
export const count = (n: number, thing: string): string => `${n.toLocaleString('en-US')} ${thing}${n === 1 ? '' : 's'}`

/** `340 bytes`, `12.5 KB`, `3.1 MB`. */
export function size(bytes: number): string {
  if (bytes < 1024) return count(bytes, 'byte')
  return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 ** 2).toFixed(1)} MB`
}

/** The first `limit` characters, without cutting a surrogate pair in two. */
export function head(text: string, limit: number): string {
  if (text.length <= limit) return text
  const last = text.charCodeAt(limit - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? limit - 1 : limit)
}

/** A name in a list of lines: one with a line end or another control character in it is written as JSON, which is how it may be sent back. */
export const listed = (name: string): string => /\p{Cc}/u.test(name) ? JSON.stringify(name).replace(/[\u007f-\u009f]/g, one => `\\u00${one.charCodeAt(0).toString(16)}`) : name

const MEANING: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'goes through a file as if it were a folder',
  EISDIR: 'is a folder, not a file',
  EACCES: 'is not open to this user (permission denied)',
  EPERM: 'is not open to this user (operation not permitted)',
  ELOOP: 'is a chain of links that leads nowhere',
  EINVAL: 'is not a regular file',
  EAGAIN: 'changed while it was opened; try again',
  ENAMETOOLONG: 'is too long for a file name',
  ENOSPC: 'could not be written: the disk is full',
  EDQUOT: 'could not be written: the disk quota is used up',
  EROFS: 'is on a read-only file system',
  EMFILE: 'could not be opened: too many files are open; try again',
  ENFILE: 'could not be opened: too many files are open; try again',
}
export const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code

/** The same failure as one sentence about the path the model gave; anything but a file system error comes back as it is. */
export function inWords(error: unknown, path: string): unknown {
  const meaning = MEANING[codeOf(error) ?? '']
  return meaning ? new Error(`"${path}" ${meaning}`, { cause: error }) : error instanceof Error ? error : new Error(messageOf(error))
}
