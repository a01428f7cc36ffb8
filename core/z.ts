/**
 * zod, set up before the first schema is made: all of core takes it from here, and `harnessx` hands it on.
 * Schemas are interpreted and not compiled to functions: each is used a few times, and compiling those of a start costs more than it could ever win back.
 */
import { z } from 'zod'

z.config({ jitless: true })
export { z }
