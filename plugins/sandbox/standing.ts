/**
 * What a command line of bubblewrap rests on beside its words: which file stands at each path of it, and what is mounted on this machine. While neither changes, a sandbox that was
 * started by it holds what one started now would. Of a folder it counts which one it is; of a file also that no name of it was taken away, since that takes the mount on it away too.
 */
import { statSync } from 'node:fs'
import { textOf } from './files.js'

export const standing = (argv: readonly string[]): string =>
  [textOf('/proc/self/mountinfo') ?? '', ...new Set(argv.filter(word => word.startsWith('/') && word !== '/dev/null'))].map((word, n) => n === 0 ? word : whichOf(word)).join('\n')

function whichOf(path: string): string {
  try {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? '' : `${stat.dev} ${stat.ino} ${stat.birthtimeNs} ${stat.isDirectory() ? '' : stat.ctimeNs}`   // a number of a file is given out again, its time of birth is not
  } catch { return '' }                                       // not ours to see, and bubblewrap will say so
}
