/** Sees when memory is nearly used up, while there is enough left to end in order. Knows no daemon: who is told decides. */
import { getHeapStatistics, type HeapInfo } from 'node:v8'

/** A share of what the engine may use, in this many looks in a row: what a collection frees does not count. */
const FULL = 0.75, LOOKS = 3, LOOK_MS = 2000

/** Calls `full` once, with a sentence. The disposer ends the watch. */
export function watchMemory(full: (sentence: string) => void, statistics: () => Pick<HeapInfo, 'used_heap_size' | 'external_memory' | 'heap_size_limit'> = getHeapStatistics, everyMs = LOOK_MS): () => void {
  let looks = 0
  const timer = setInterval(() => {
    const { used_heap_size: heap, external_memory: external, heap_size_limit: limit } = statistics()
    looks = heap + external > FULL * limit ? looks + 1 : 0
    if (looks < LOOKS) return
    clearInterval(timer)
    full(`${megabytes(heap)} of heap and ${megabytes(external)} of buffers are in use, of ${megabytes(limit)} that Node allows`)
  }, everyMs).unref()
  return () => { clearInterval(timer) }
}
const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`
