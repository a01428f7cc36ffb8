import { describe, expect, it } from 'vitest'
import { parseLayers } from '../../core/loader/config.js'
import { explain } from '../../core/loader/config-explain.js'
import { place } from '../support/hx.js'

const user = { file: '/u.yaml', text: 'agent: { maxSteps: 7, system: mine }\nplugins:\n  - { name: a, config: { key: "${env:KEY}" } }\n' }
const project = { file: '/p.yaml', text: 'agent:\n  maxSteps: 9\nplugins:\n  - { id: a, enabled: false }\n  - b\n' }

describe('the config, explained', () => {
  it('says of each value which line of which layer it comes from, and shows references as written', () => {
    const layers = [user, project], { rows } = parseLayers(layers)
    const all = new Map(explain(layers, rows, new Map([['b', { size: 3 }]])).map(({ key, value, place }) => [key, [value, place && `${place.file}:${place.line}`]]))
    expect(all.get('agent.maxSteps')).toEqual([9, '/p.yaml:2'])
    expect(all.get('agent.system')).toEqual(['mine', '/u.yaml:1'])
    expect(all.get('agent.maxContinuations')).toEqual([8, undefined])
    expect(all.get('plugins.a.enabled')).toEqual([false, '/p.yaml:4'])
    expect(all.get('plugins.a.name')).toEqual(['a', '/u.yaml:3'])
    expect(all.get('plugins.a.config.key')).toEqual(['${env:KEY}', '/u.yaml:3'])
    expect(all.get('plugins.b.name')).toEqual(['b', '/p.yaml:5'])
    expect(all.get('plugins.b.config.size')).toEqual([3, undefined])
  })
  it('is what hx config explain prints, one key or all, with the defaults of plugins and without what references lead to', async () => {
    const { hx } = place({ 'harness.config.yaml': 'plugins:\n  - name: todo\n  - name: model-openai\n    config: { profile: custom, baseURL: "http://localhost:1", apiKey: "${env:MY_KEY}" }\n' })
    const { stdout } = await hx(['config', 'explain', '--trust'], { env: { MY_KEY: 'hx-canary-1' } })
    expect(stdout).toMatch(/plugins\.todo\.config\.max +50 +default/)
    expect(stdout).toMatch(/plugins\.model-openai\.config\.apiKey +"\$\{env:MY_KEY\}" +\/.*harness\.config\.yaml:4/)
    expect(stdout).not.toContain('hx-canary-1')
    expect(JSON.parse((await hx(['config', 'explain', 'agent.maxSteps', '--trust', '--json'], { env: { MY_KEY: 'x' } })).stdout)).toMatchObject({ values: [{ key: 'agent.maxSteps', value: 50, layer: 'default' }] })
    expect((await hx(['config', 'explain', 'agent.maxStep', '--trust'], { env: { MY_KEY: 'x' } })).stderr).toContain('did you mean "agent.maxSteps"?')
  }, 30_000)
})
