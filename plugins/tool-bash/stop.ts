/** The tool `stop_command`: ends what `bash` started in the background. A command in a sandbox can not see, let alone end, what another call started. */
import { z, type Tool, type ToolRun } from 'harnessx'
import type { Jobs } from './jobs.js'

export function stopTool(jobs: Jobs): Tool {
  const parameters = z.object({ pid: z.int().min(1).describe('The pid that bash gave.') })
  return {
    name: 'stop_command',
    description: 'Stop a command that bash started in the background, and everything that it started.',
    parameters,
    async execute({ pid }: z.infer<typeof parameters>, { session }: ToolRun) {
      const running = jobs.running(session.id), job = running.find(one => one.pid === pid)
      if (!job) throw new Error(`no background command of this session has the pid ${pid}; ${running.length === 0 ? 'none runs' : `there are ${running.map(one => one.pid).join(', ')}`}`)
      return { none: 'it had ended already', terminated: 'stopped', killed: 'it did not end on SIGTERM and was killed', left: 'some of its processes could not be stopped' }[await job.stop('stopped')]
    },
  }
}
