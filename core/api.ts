/**
 * The only door for plugins: what `import … from 'harnessx'` gives. The host answers that import itself, so there is one instance, wherever a plugin stands.
 * Public interface under SemVer. The maps come through `export *`, so that `declare module 'harnessx'` can extend them.
 */
export * from './kernel/hooks.js'
export * from './agent/hooks.js'
export * from './agent/vocabulary.js'
export * from './agent/services.js'
export type * from './agent/session-events.js'
export type { Route, RoutesService } from './routes.js'
export type { Level, Logger } from './kernel/log.js'
export { HarnessError, messageOf, nearest, type ErrorCode } from './errors.js'
export { z } from 'zod'
export { duration } from './duration.js'
