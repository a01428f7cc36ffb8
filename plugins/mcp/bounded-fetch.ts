/**
 * `fetch` that reads no answer without end: a body, or one line of an event stream, that is longer than a message may be fails its reader, and is told. Redirects are the SDK's to judge.
 * Each request has a connection of its own: one that is kept for the next would outlive the plugin.
 */
export function boundedFetch(maxBytes: number, tooLong: () => void): typeof fetch {
  return async (input, init) => {
    const own = new Headers(init?.headers)
    own.set('connection', 'close')
    const response = await fetch(input, { ...init, headers: own })
    if (!response.body) return response
    const stream = response.headers.get('content-type')?.includes('text/event-stream') ?? false
    let bytes = 0
    const body = response.body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const end = stream ? chunk.lastIndexOf(10) : -1
        bytes = end < 0 ? bytes + chunk.length : chunk.length - end - 1
        if (bytes <= maxBytes) { controller.enqueue(chunk); return }
        tooLong()
        throw new Error('the answer is too long')
      },
    }))
    const { status, statusText, headers } = response
    return Object.defineProperty(new Response(body, { status, statusText, headers }), 'url', { value: response.url })
  }
}
