/** CONTRACT STUB, to be replaced by the implementation. */
import type { HookKind } from './hooks.js'
export interface Rule { readonly kind: HookKind }
