import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Jobs } from '../../plugins/tool-bash/jobs.js'
import { Output } from '../../plugins/tool-bash/output.js'
import { PipeSupply } from '../../plugins/tool-bash/pipes.js'
import { find } from '../../plugins/tool-bash/processes.js'
import { folder } from '../support/folder.js'

const command = (cwd: string) => ({ argv: ['/bin/sh', '-c', 'sleep 4712'], cwd, env: { PATH: process.env['PATH'] ?? '' } })
const output = (cwd: string) => new Output({ folder: () => cwd, maxCharacters: 1000, maxBytes: 1000 })

describe('a command that is being started when its plugin or session is stopped', () => {
  for (const how of ['plugin', 'session'] as const) {
    it(`is stopped with its ${how}, and does not begin when nobody looks any more`, async () => {
      const { path } = folder(), jobs = new Jobs(), starting = jobs.start('s', command(path), output(path))
      await (how === 'plugin' ? jobs.stopAll() : jobs.stopSession('s'))
      const job = await starting
      await job.exited
      expect(await find({ mark: 'none', group: job.pid })).toEqual([])
    })
  }
  it('is refused when the plugin has been stopped', async () => {
    const { path } = folder(), jobs = new Jobs()
    await jobs.stopAll()
    await expect(jobs.start('s', command(path), output(path))).rejects.toThrow('unloaded')
  })
})

describe('the pipes of the next command', () => {
  const descriptors = () => readdirSync('/dev/fd').length
  it('are held in reserve once, and closed with the plugin', async () => {
    const before = descriptors(), supply = new PipeSupply()
    supply.prepare()
    supply.prepare()
    const pipes = await supply.take()
    expect(descriptors()).toBe(before + 4)
    supply.prepare()
    await supply.close()
    supply.prepare()                                           // a command that was being started meanwhile
    expect(descriptors()).toBe(before + 4)
    await new Promise(resolve => { pipes!.stdout.once('close', resolve).destroy() })
    expect(descriptors()).toBe(before + 3)
    pipes!.stderr.destroy()
  })
  it('leave no folder behind, and fail no command where none can be made', async () => {
    const { TMPDIR } = process.env, { path } = folder()
    try {
      for (const place of [path, '/nowhere']) {
        process.env['TMPDIR'] = place
        const supply = new PipeSupply()
        supply.prepare()
        if (place === path) await supply.close()
        else expect(await supply.take()).toBeUndefined()
      }
    } finally { if (TMPDIR === undefined) delete process.env['TMPDIR']; else process.env['TMPDIR'] = TMPDIR }
    expect(readdirSync(path)).toEqual([])
  })
})
