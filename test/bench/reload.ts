/**
 * From the save of a file by another process to the new version serving, beside the least that such a thing can cost on this machine at this moment:
 * the system's own event, read, compile, run (and for the config: event, read, parse). Plugin and floor take turns, at a person's pace: caches are as cold as they are in use.
 */
import { readFileSync, watch, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import vm from 'node:vm'
import { parseDocument } from 'yaml'
import { startApp } from '../support/app.js'
import { pluginOfSize, scriptOfSize } from '../support/plugin-source.js'
import { nanoseconds, startSaver } from '../support/saver.js'
import { row, type Row } from './row.js'

const ROUNDS = 40, WARM_UP = 10
/** After a save: its re-checks are over. */
const PAUSE_MS = 250
/** When both are done, mostly. */
const ANSWER_MS = 50
const SIZES = { '5 KB': 5_000, '200 KB': 200_000 }

export async function benchReload(): Promise<Row[]> {
  const saver = startSaver(ANSWER_MS)
  const plugin = (bytes: number, version: number) => pluginOfSize('sized', version, bytes)
  const config = (version: number) => `version: 1\nplugins:\n${Array.from({ length: 15 }, (_, index) => `  - name: p${index}\n    config: { n: ${index === 7 ? version : index} }\n`).join('')}  - sized\n`
  const running = await startApp({
    files: { 'plugins/sized.ts': plugin(5_000, 0), ...Object.fromEntries(Array.from({ length: 15 }, (_, index) => [`plugins/p${index}.ts`, `export const apply = () => {}`])) },
    config: config(7),
  })
  const floor = floorProbe()
  const since = async (active: Promise<bigint>, saved: Promise<bigint>) => { const [end, begin] = await Promise.all([active, saved]); return Number(end - begin) / 1e6 }
  const eventOf = async (type: string) => (await running.next(event => event.type === type)).at
  let version = 0

  const alternate = async (name: string, probe: () => Promise<number>, work: () => Promise<number>): Promise<Row[]> => {
    const floors: number[] = [], times: number[] = []
    for (let round = 0; round < ROUNDS + WARM_UP; round++) {
      await sleep(PAUSE_MS)
      const low = await probe()
      await sleep(PAUSE_MS)
      const time = await work()
      if (round < WARM_UP) continue
      floors.push(low)
      times.push(time)
    }
    const base = row(`${name}: floor`, 'ms', floors)
    return [base, row(`${name}: save to active`, 'ms', times, base)]
  }
  try {
    const rows: Row[] = []
    for (const [name, bytes] of Object.entries(SIZES)) {
      for (const how of ['in place', 'by rename'] as const) rows.push(...await alternate(`${name} ${how}`,
        () => since(floor.script(++version), saver.save(how, floor.scriptFile, scriptOfSize(version, bytes))),
        () => since(eventOf('reloaded'), saver.save(how, running.at('plugins/sized.ts'), plugin(bytes, ++version)))))
    }
    rows.push(...await alternate('YAML',
      () => since(floor.yaml(++version), saver.save('by rename', floor.yamlFile, config(version))),
      () => since(eventOf('config-applied'), saver.save('by rename', running.config, config(++version)))))
    return rows
  } finally {
    floor.close()
    saver.close()
    await running.close()
  }
}

/** Watches two files with nothing but Node. */
function floorProbe() {
  const folder = mkdtempSync(join(tmpdir(), 'hx-floor-'))
  const scriptFile = join(folder, 'floor.js'), yamlFile = join(folder, 'floor.yaml')
  writeFileSync(scriptFile, '')
  writeFileSync(yamlFile, '')
  let seen = (_: string) => {}
  const watcher = watch(folder, (_, name) => { if (name !== null) seen(join(folder, name)) })
  const when = (file: string, holds: (text: string) => boolean) => new Promise<bigint>(resolve => {
    seen = changed => {
      if (changed !== file) return
      let text = ''
      try { text = readFileSync(file, 'utf8') } catch { return }        // between two steps of the save; the next one tells
      if (holds(text)) resolve(nanoseconds())
    }
  })
  return {
    scriptFile, yamlFile,
    script: (version: number) => when(scriptFile, text => {
      try { vm.compileFunction(text)() } catch { return false }          // half of it
      return (globalThis as { hxFloor?: number }).hxFloor === version
    }),
    yaml: (version: number) => when(yamlFile, text => text !== '' && JSON.stringify(parseDocument(text).toJS()).includes(`"n":${version}`)),
    close: () => {
      watcher.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
