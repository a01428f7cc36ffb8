/** Whether bubblewrap works on this machine; without it only its absence can be tried. */
import { spawnSync } from 'node:child_process'

export const hasSandbox = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', '--unshare-net', '--proc', '/proc', '--dev', '/dev', 'true']).status === 0
