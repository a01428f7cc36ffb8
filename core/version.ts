/** The version of this installation, from its package.json. */
import manifest from '../package.json' with { type: 'json' }

export const VERSION: string = manifest.version
