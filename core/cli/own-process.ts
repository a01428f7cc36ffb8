/**
 * What other processes of the same user get from this one without a question: its environment at the start (/proc/PID/environ, as long as it lives and whatever it deletes),
 * and a debugger, which Node opens to the whole machine when it is sent SIGUSR1. A host blanks the values of secrets there, in its own memory, goes on with copies, and takes the signal.
 * No wall: who may read a process's memory still finds them, and the shell that started it has an environment of its own.
 */
import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { isSecretName } from '../kernel/secrets.js'

/** Fields of /proc/self/stat behind the name: where the strings of the environment begin and end in memory. */
const ENV_START = 47, ENV_END = 48

export function guardProcess(env: NodeJS.ProcessEnv): void {
  if (process.listenerCount('SIGUSR1') === 0) process.on('SIGUSR1', () => {})              // who wants to debug a host starts it with --inspect
  if (process.platform !== 'linux' || env !== process.env || !Object.keys(env).some(isSecretName)) return
  try { blank(env) } catch { /* no /proc, or not ours to write: then it is as readable as anybody's */ }
}

function blank(env: NodeJS.ProcessEnv): void {
  const stat = readFileSync('/proc/self/stat', 'latin1'), fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const start = Number(fields[ENV_START]), bytes = Buffer.alloc(Number(fields[ENV_END]) - start)
  const memory = openSync('/proc/self/mem', 'r+')
  try {
    if (!readFileSync('/proc/self/environ').equals(bytes.subarray(0, readSync(memory, bytes, 0, bytes.length, start)))) return
    for (let at = 0, end = 0; at < bytes.length; at = end + 1) {
      end = bytes.indexOf(0, at)
      if (end < 0) return
      const text = bytes.toString('utf8', at, end), equals = text.indexOf('='), name = text.slice(0, equals), value = text.slice(equals + 1)
      if (equals < 1 || value === '' || !isSecretName(name) || !Buffer.from(text).equals(bytes.subarray(at, end))) continue
      if (env[name] === value) env[name] = value               // set again, it stands on the heap
      const length = Buffer.byteLength(value)
      writeSync(memory, Buffer.alloc(length), 0, length, start + end - length)
    }
  } finally { closeSync(memory) }
}
