import { describe, expect, it } from 'vitest'
import { Jobs } from '../../plugins/tool-bash/jobs.js'
import { Output } from '../../plugins/tool-bash/output.js'
import { find } from '../../plugins/tool-bash/processes.js'
import { folder } from '../support/folder.js'

const command = (cwd: string) => ({ argv: ['/bin/sh', '-c', 'sleep 4712'], cwd, env: { PATH: process.env['PATH'] ?? '' } })
const output = (cwd: string) => new Output({ folder: () => cwd, maxCharacters: 1000, maxBytes: 1000 })

describe('a command that is being started when its plugin or session is stopped', () => {
  for (const how of ['plugin', 'session'] as const) {
    it(`is stopped with its ${how}, and does not begin when nobody looks any more`, async () => {
      const { path } = folder(), jobs = await Jobs.open(), starting = jobs.start('s', command(path), output(path))
      await (how === 'plugin' ? jobs.stopAll() : jobs.stopSession('s'))
      const job = await starting
      await job.exited
      expect(await find({ mark: 'none', group: job.pid })).toEqual([])
    })
  }
  it('is refused when the plugin has been stopped', async () => {
    const { path } = folder(), jobs = await Jobs.open()
    await jobs.stopAll()
    await expect(jobs.start('s', command(path), output(path))).rejects.toThrow('unloaded')
  })
})
