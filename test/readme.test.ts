import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { CODES } from '../core/errors.js'
import { RULES } from '../core/agent/hook-rules.js'
import { place } from './support/hx.js'

const readme = readFileSync(fileURLToPath(new URL('../README.md', import.meta.url)), 'utf8')
const blocks = (language: string) => [...readme.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(match => match[1]!)

describe('README.md', () => {
  it('lists every error code, as the table in core/errors.ts has it', () => {
    const rows = Object.entries(CODES).map(([code, { exit, about }]) => `| \`${code}\` | ${exit} | ${about} |`)
    expect(readme).toContain(['| code | exit | |', '|---|---|---|', ...rows].join('\n'))
  })
  it('names every hook', () => {
    const table = readme.slice(readme.indexOf('## Hooks'), readme.indexOf('## The config'))
    const missing = Object.keys(RULES).filter(hook => !table.includes(hook) && !table.includes(`\`${hook.replace('agent/', '')}\``) && !table.includes(`\`${hook.replace(/^agent\/[a-z]+/, '')}\``))
    expect(missing).toEqual([])
  })
  it('shows plugins that load and do what they say', async () => {
    const [guard, clock] = blocks('ts')
    const { hx, env } = place({ 'harness.config.yaml': 'plugins: [no-secrets, clock, tool-fs, model-offline]\n', 'plugins/no-secrets.ts': guard!, 'plugins/clock.ts': clock!, 'secret.txt': 'x', 'a.txt': 'y' })
    const listed = JSON.parse((await hx(['plugins', '--trust', '--json'])).stdout) as { plugins: { id: string; state: string; lastError?: string }[] }
    expect(listed.plugins.map(({ id, state, lastError }) => ({ id, state, lastError }))).toEqual(['no-secrets', 'clock', 'tool-fs', 'model-offline'].map(id => ({ id, state: 'active', lastError: undefined })))
    const refused = await hx(['agent', '--trust', '--offline', '--json', 'Read secret.txt'], { env })
    expect(refused.stdout).toContain('secrets stay here')
    expect(refused.stdout).toContain('The time is 20')
  })
  it('gives as first two commands the demo and the tests', () => {
    const [first] = blocks('sh')
    expect(first!.trim().split('\n').map(line => line.split('#')[0]!.trim())).toEqual(['npm ci && npm run demo', 'npm test'])
    const { scripts } = JSON.parse(readFileSync(fileURLToPath(new URL('../package.json', import.meta.url)), 'utf8')) as { scripts: Record<string, string> }
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['demo', 'test']))
  })
})
