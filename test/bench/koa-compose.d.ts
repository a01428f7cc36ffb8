/** The package has no types of its own. */
declare module 'koa-compose' {
  export default function compose(handlers: readonly ((payload: object, next: () => Promise<unknown>) => unknown)[]): (payload: object, inner: () => unknown) => Promise<unknown>
}
