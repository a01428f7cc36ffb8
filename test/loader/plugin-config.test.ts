import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { duration } from '../../core/duration.js'
import type { StandardSchema } from '../../core/kernel/hooks.js'
import { validateConfig } from '../../core/loader/plugin-config.js'
import { failure } from '../support/kernel.js'

const place = (path: readonly PropertyKey[]) => ({ file: '/home/x/harness.config.yaml', line: 12 + path.length })
const validate = (schema: StandardSchema | undefined, config: unknown) => validateConfig('guard', schema, config, place)
const schema = z.object({
  limit: z.int().positive().optional(), mode: z.enum(['x', 'y']).optional(), name: z.string().min(3).optional(), tags: z.array(z.string()).max(2).optional(),
  every: duration.prefault('10m'), rules: z.array(z.strictObject({ when: z.string() })).optional(), own: z.string().refine(text => text.startsWith('a'), 'must start with "a"').optional(), odd: z.string().regex(/x/).optional(),
}).strict()

describe('the config of a plugin', () => {
  it('is as written without a schema, and an empty map when there is none', async () => {
    expect(await validate(undefined, { a: 1 })).toEqual({ a: 1 })
    expect(await validate(undefined, undefined)).toEqual({})
  })
  it('is what the schema makes of it, synchronous or not', async () => {
    expect(await validate(schema, undefined)).toEqual({ every: 600_000 })
    expect(await validate({ '~standard': { version: 1, vendor: 'x', validate: async value => ({ value: { wrapped: value } }) } }, 1)).toEqual({ wrapped: 1 })
  })
  it.each<[unknown, string]>([
    [7, 'its Config could not check the config (it must answer {value} or {issues: [{message}]}, received 7)'],
    [undefined, 'its Config could not check the config (it must answer {value} or {issues: [{message}]}, received undefined)'],
    [{}, 'its Config could not check the config (it must answer {value} or {issues: [{message}]}, received {})'],
    [{ issues: [{}] }, 'config is wrong: its Config gave no message, received {} (harness.config.yaml:12)'],
  ])('is refused when the schema answers what no schema may: %j', async (answer, says) => {
    expect((await failure(validate({ '~standard': { version: 1, vendor: 'own', validate: () => answer as never } }, undefined))).message).toBe(`plugin "guard": ${says}`)
  })
  it('has no duration that a timer of Node would take for none', async () => {
    expect(await validate(schema, { every: '24d' })).toEqual({ every: 24 * 86_400_000 })
    for (const every of ['25d', '99999d', `${'9'.repeat(400)}h`]) expect(await validate(schema, { every })).toEqual({ every: 2 ** 31 - 1 })
  })
  it.each<[unknown, string]>([
    [{ limit: 'ten' }, 'config.limit must be a number, received "ten" (harness.config.yaml:13)'],
    [{ rules: [{ when: 'y', wehn: 'x' }] }, 'config.rules[0] has no key "wehn"; did you mean "when"? (harness.config.yaml:14)'],
    [{ limit: 1.5 }, 'config.limit must be an integer, received 1.5 (harness.config.yaml:13)'],
    [{ limit: 0 }, 'config.limit must be more than 0, received 0 (harness.config.yaml:13)'],
    [{ mode: 'z' }, 'config.mode must be one of "x", "y", received "z" (harness.config.yaml:13)'],
    [{ name: 'ab' }, 'config.name must be at least 3 characters long, received "ab" (harness.config.yaml:13)'],
    [{ tags: ['a', 'b', 'c'] }, 'config.tags must be at most 2 items long, received ["a","b","c"] (harness.config.yaml:13)'],
    [{ rules: [{}] }, 'config.rules[0].when is missing and must be a string (harness.config.yaml:15)'],
    [{ every: 'soon' }, 'config.every must be a duration such as "500ms", "5s" or "10m", received "soon" (harness.config.yaml:13)'],
    [{ own: 'b' }, 'config.own must start with "a", received "b" (harness.config.yaml:13)'],
    [{ odd: 'b' }, 'config.odd is wrong: Invalid string: must match pattern /x/, received "b" (harness.config.yaml:13)'],
    [{ limt: 1 }, 'config has no key "limt"; did you mean "limit"? (harness.config.yaml:12)'],
    ['text', 'config must be an object, received "text" (harness.config.yaml:12)'],
    [{ limit: 'a', mode: 'b', name: 1, every: 1, own: 1 }, 'config.limit must be a number, received "a" (harness.config.yaml:13); config.mode must be one of "x", "y", received "b" (harness.config.yaml:13); config.name must be a string, received 1 (harness.config.yaml:13); and 2 more'],
  ])('that is wrong is told with the place: %j', async (config, message) => {
    const error = await failure(validate(schema, config))
    expect(error.code).toBe('config_invalid')
    expect(error.message).toBe(`plugin "guard": ${message}`)
    expect(error.place?.file).toBe('/home/x/harness.config.yaml')
  })
  it('takes the words and paths of any Standard Schema', async () => {
    const own: StandardSchema = { '~standard': { version: 1, vendor: 'x', validate: () => ({ issues: [{ message: 'too odd', path: [{ key: 'n' }] }] }) } }
    expect((await failure(validate(own, { n: 3 }))).message).toBe('plugin "guard": config.n is wrong: too odd, received 3 (harness.config.yaml:13)')
  })
  it('survives a schema that throws', async () => {
    const broken: StandardSchema = { '~standard': { version: 1, vendor: 'x', validate: () => { throw new Error('boom') } } }
    expect(await failure(validate(broken, {}))).toMatchObject({ code: 'config_invalid', message: 'plugin "guard": its Config could not check the config (boom)' })
  })
})
