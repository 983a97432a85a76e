/** `spt run --plan FILE`: runs a plan on data, without the compiler. */
import { readFile } from 'node:fs/promises'
import { loadPlan } from '../../api/plans/loaded-plan.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { writeTensor } from '../../io/index.ts'
import { withFileErrors } from '../../io/node-files.ts'
import { devices } from '../../node.ts'
import { readPlan } from '../../plan/read.ts'
import type { Plan } from '../../plan/schema.ts'
import type { Call } from '../arguments/command.ts'
import { EXIT } from '../output/failure.ts'
import { bindOptions, checkOutputs, readInputs, sizeOptions } from './bind-options.ts'

/** Reads a JSON file. Throws SptError `plan/malformed`. */
async function planIn(path: string): Promise<Plan> {
  const text = await withFileErrors(path, 'read', () => readFile(path, 'utf8'))
  const json = ((): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      return failWith('plan/malformed', `'${path}' is not JSON`, {
        expected: 'a plan',
        hint: `spt emit kernel.spt --target plan --out '${path}'`,
      })
    }
  })()
  return json as Plan
}

export async function runPlan(call: Call, path: string): Promise<number> {
  const plan = await planIn(path)
  const { kernel, device: kind } = readPlan(plan)
  const { files, seed } = bindOptions(call)
  const params = sizeOptions(call)
  const outputs = call.pairs('out', 'PATH')
  await checkOutputs(kernel, outputs)
  const tensors = await readInputs(kernel, files, params)
  const device = await devices[call.choice('device', ['cpu', 'webgpu', 'cuda']) ?? kind]()
  try {
    const loaded = await loadPlan(plan, device)
    const bound = await loaded.bind({ ...tensors, ...Object.fromEntries(params) }, { seed })
    const start = performance.now()
    await bound.run()
    const milliseconds = performance.now() - start
    for (const [name, to] of outputs) await writeTensor(to, await bound.get(name))
    bound.free()
    const report = { kernel: plan.kernel, schedule: plan.schedule, device: device.name, milliseconds }
    call.io.out(
      call.flag('json')
        ? `${JSON.stringify({ ...report, written: Object.fromEntries(outputs) })}\n`
        : `${[
            `${report.kernel}${report.schedule ? `.${report.schedule}` : ''} on ${device.name}: first run ${milliseconds.toPrecision(3)} ms`,
            ...[...outputs].map(([name, to]) => `${name} written to ${to}`),
          ].join('\n')}\n`,
    )
    return EXIT.ok
  } finally {
    await device.dispose()
  }
}
