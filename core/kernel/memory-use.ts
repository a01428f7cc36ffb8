/** What memory this process uses, in bytes. Where the system shows no processes (no /proc), what is resident is not known, and told as 0. */
import { getHeapStatistics } from 'node:v8'

export function memoryUse(): { readonly rssBytes: number; readonly heapBytes: number } {
  try {
    const { rss, heapUsed } = process.memoryUsage()
    return { rssBytes: rss, heapBytes: heapUsed }
  } catch { return { rssBytes: 0, heapBytes: getHeapStatistics().used_heap_size } }      // it throws for the one, and tells neither
}
