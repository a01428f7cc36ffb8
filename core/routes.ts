/**
 * Routes that plugins add to the daemon's HTTP, and the service `ctx.routes`. Only a daemon offers it; elsewhere whoever injects it waits. Knows no server: requests and responses are the web's own.
 * Invariants: a route belongs to one owner; a request counts as a call of its plugin until the last byte of its response, so that a reload lets it end and an unload waits for it.
 * What stands before every route is the daemon's: the token, and who may come to it at all.
 */
import { HarnessError, show } from './errors.js'
import { heard } from './kernel/heard-signal.js'
import type { Disposer } from './kernel/hooks.js'
import type { Kernel } from './kernel/kernel.js'
import type { Registry, Scope } from './kernel/registry.js'

export interface Route {
  readonly method: 'GET' | 'POST'
  /** Exact, or with `/*` at its end: `/v1/models`, `/v1/models/*`. Clients of hx itself send its protocol header and never come here, so its own paths are free. */
  readonly path: string
  /** Its `signal` aborts when the client has left, as does the stream of a response. A throw is answered with 500. */
  handle(request: Request): Response | Promise<Response>
}
export interface RoutesService { register(route: Route): Disposer }

declare module './kernel/hooks.js' {
  interface Services {
    /** Only in a daemon: name it in `inject`. */
    routes: RoutesService
  }
}

export class Routes {
  readonly #registry: Registry<Route>
  constructor(kernel: Kernel) {
    this.#registry = kernel.registry<Route>('route', (entry, present) => {
      throw new HarnessError('already_registered', `route "${entry.slot}" of plugin "${entry.owner.id}" already belongs to plugin "${present.owner.id}"; disable one of them`)
    })
    kernel.service('routes', scope => {
      const register = (route: Route): Disposer => this.#register(scope, route, register)
      return { register }
    })
  }

  /** Undefined when no plugin has a route for it. Rejects with what the plugin threw. */
  handle(request: Request): Promise<Response> | undefined {
    const slot = this.#slotOf(request.method, new URL(request.url).pathname)
    if (slot === undefined) return undefined
    return new Promise((resolve, reject) => {
      const running = this.#registry.use(slot, async route => {
        heard(request.signal)
        const answer = await route.handle(request)
        if (!(answer instanceof Response)) throw new TypeError(`route "${slot}" gave no Response, but ${show(answer)}`)
        const { response, sent } = followed(answer)
        resolve(response)
        await sent
      })
      if (running) running.catch(reject)
      else reject(new HarnessError('unknown_id', `route "${slot}" is gone: its plugin was unloaded`))
    })
  }

  /** The longest that fits. */
  #slotOf(method: string, path: string): string | undefined {
    const fits = (slot: string) => slot === `${method} ${path}` || (slot.endsWith('/*') && `${method} ${path}`.startsWith(slot.slice(0, -1)))
    return this.#registry.slots().filter(fits).sort((a, b) => b.length - a.length)[0]
  }
  #register(scope: Scope, route: Route, below: (route: Route) => Disposer): Disposer {
    const wrong = (what: string) => new HarnessError('plugin_invalid', `plugin "${scope.owner.id}": ${what}`)
    if (typeof route !== 'object' || route === null) throw wrong(`a route is an object with method, path and handle, received ${show(route)}`)
    if (route.method !== 'GET' && route.method !== 'POST') throw wrong(`a route's method is GET or POST, received ${show(route.method)}`)
    if (typeof route.path !== 'string' || !/^(\/[\w.~-]+)+(\/\*)?$/.test(route.path)) throw wrong(`a route's path looks like "/v1/models" or "/v1/models/*", received ${show(route.path)}`)
    if (typeof route.handle !== 'function') throw wrong(`route "${route.path}": handle must be a function, received ${show(route.handle)}`)
    return this.#registry.add(scope, `${route.method} ${route.path}`, route, { origin: this.#registry.origin(scope, below) })
  }
}

/** The same response, and when the last of it was taken or nobody wants it any more. */
function followed(answer: Response): { response: Response; sent: Promise<void> } {
  if (!answer.body) return { response: answer, sent: Promise.resolve() }
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const sent = answer.body.pipeTo(writable).catch(() => {})          // its reader has left, or its plugin broke it off: the client sees that
  return { response: new Response(readable, answer), sent }
}
