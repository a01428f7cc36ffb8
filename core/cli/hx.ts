#!/usr/bin/env node
/**
 * The bin: turns on Node's own compile cache where there is one (22.1 and later), before anything worth caching is loaded.
 * The cache is code that will run, so it stands in a folder of the user's own and never in a shared temporary one.
 */
import module from 'node:module'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

const { HX_HOME = '', XDG_CACHE_HOME = '', HOME } = process.env
const { enableCompileCache } = module as { enableCompileCache?: (folder: string) => unknown }
enableCompileCache?.(isAbsolute(HX_HOME) ? join(HX_HOME, 'cache') : join(isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(HOME || homedir(), '.cache'), 'hx'))
await import('./main.js')
