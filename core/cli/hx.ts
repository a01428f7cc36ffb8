#!/usr/bin/env node
/** The bin: turns on Node's own compile cache where there is one (22.1 and later), before anything worth caching is loaded. */
import module from 'node:module'

const { enableCompileCache } = module as { enableCompileCache?: () => unknown }
enableCompileCache?.()
await import('./main.js')
