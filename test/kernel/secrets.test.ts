import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Log, type LogRecord } from '../../core/kernel/log.js'
import { HIDDEN, isSecretName, Secrets } from '../../core/kernel/secrets.js'

describe('secrets', () => {
  it('are hidden wherever they stand in a text, whatever characters they have', () => {
    fc.assert(fc.property(fc.string({ minLength: 6 }), fc.string(), fc.string(), (secret, before, behind) => {
      const secrets = new Secrets()
      secrets.learn([secret])
      expect(secrets.hide(`${before}|${secret}|${behind}`).includes(`|${secret}|`)).toBe(false)
    }))
  })
  it('are hidden whole when one is the beginning of another', () => {
    const secrets = new Secrets()
    secrets.learn(['abcdef', 'abcdef-ghi'])
    expect(secrets.hide('x abcdef-ghi y abcdef z')).toBe(`x ${HIDDEN} y ${HIDDEN} z`)
  })
  it('are known by the names of variables, and by their form', () => {
    for (const name of ['OPENAI_API_KEY', 'apiKey', 'STAGING_TOKEN', 'accessToken', 'DB_PASSWORD', 'clientSecret', 'Authorization', 'AWS_SECRET_ACCESS_KEY']) expect(isSecretName(name), name).toBe(true)
    for (const name of ['PATH', 'monkey', 'maxSteps', 'tokens_left', 'author', 'HX_HOME', 'path']) expect(isSecretName(name), name).toBe(false)
    const secrets = new Secrets()
    secrets.learnEnv({ OPENAI_API_KEY: 'hx-canary-1', MY_TOKEN: 'short', HOME: '/home/somebody' })
    expect(secrets.hide('hx-canary-1 short /home/somebody')).toBe(`${HIDDEN} short /home/somebody`)
    secrets.learnIn({ apiKey: 'hx-canary-3', nested: [{ token: 'hx-canary-4', name: 'visible' }], headers: { authorization: 'hx-canary-5' } })
    expect(secrets.hide('hx-canary-3 hx-canary-4 hx-canary-5 visible')).toBe(`${HIDDEN} ${HIDDEN} ${HIDDEN} visible`)
    expect(secrets.hide('authorization: Bearer abc.def-123 then')).toBe(`authorization: Bearer ${HIDDEN} then`)
    expect(secrets.hide('key sk-proj-abcdefghijklmnop1234, https://me:pass@host/x')).toBe(`key ${HIDDEN}, https://me:${HIDDEN}@host/x`)
  })
  it('leave no record of the log, neither its message nor its fields', () => {
    const log = new Log(), lines: LogRecord[] = []
    log.sink(record => { lines.push(record) })
    log.secrets.learn(['hx-canary-1'])
    const cycle: Record<string, unknown> = { token: 'abc', plain: 1n, error: new Error('hx-canary-1 failed'), list: ['hx-canary-1', undefined] }
    cycle['self'] = cycle
    log.of('p').warn('it was hx-canary-1', cycle)
    expect(JSON.stringify(lines)).not.toContain('canary')
    expect(lines[0]).toMatchObject({ plugin: 'p', message: `it was ${HIDDEN}`, fields: { token: HIDDEN, plain: '1', list: [HIDDEN, undefined], error: { name: 'Error', message: `${HIDDEN} failed` } } })
  })
})
