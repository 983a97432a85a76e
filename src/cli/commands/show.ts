import type { Kernel } from '../../api/kernel.ts'
import { fail } from '../../ast/diagnostic.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { TARGETS, targetOf } from '../../backends/targets/index.ts'
import type { Kernel2, Plan } from '../../ir/loops.ts'
import { print2 } from '../../ir/print-stage2.ts'
import { print3 } from '../../ir/print-stage3.ts'
import { PASSES } from '../../lower/pipeline.ts'
import type { Device } from '../../runtime/device.ts'
import type { Call, CommandSpec } from '../command.ts'
import { EXIT } from '../failure.ts'
import { CHOOSING_SIZES, DEVICE_FACTS, KERNEL, schedule, TRUST } from '../options.ts'
import {
  argumentsOf,
  checkDeciding,
  chosen,
  chosenKernel,
  isChosen,
  loadFile,
  type ScheduleCall,
  scheduleCall,
  scheduled,
  sizesFor,
  within,
} from '../scheduled-kernel.ts'
import { misused } from '../usage.ts'

type Stage = 1 | 2 | 3

/** Passes by the stage that their result is at. */
const LOOPS = PASSES.slice(0, PASSES.indexOf('launches'))
const MEMORY = PASSES.slice(LOOPS.length)

export const show: CommandSpec = {
  name: 'show',
  args: 'FILE',
  count: [1, 1],
  summary: 'Print a kernel at a stage of its compilation',
  options: [
    KERNEL,
    schedule('Under this schedule: its name, or gpu(8, 32) with arguments (default: none)'),
    CHOOSING_SIZES,
    ...DEVICE_FACTS,
    { flags: '--device <D>', about: 'The device it is chosen for: cpu, webgpu or cuda (default: cpu)' },
    { flags: '--stage <N>', about: '1 coordinates, 2 positions, 3 memory (default: 1, or that of the pass)' },
    {
      flags: '--after <STEP>',
      about: "As it is after the schedule's step of that number, or after a lowering pass",
    },
    ...TRUST,
  ],
  notes: [
    `Step 0 is the kernel as written; steps are counted as they run, those of a \`use\` included.\nPasses to stage 2: ${LOOPS.join(', ')}.\nPasses to stage 3: ${MEMORY.join(', ')}.`,
  ],
  examples: [
    'spt show kernel.spt',
    'spt show kernel.spt --schedule gpu --stage 2 --after 3',
    'spt show kernel.spt --schedule gpu --after hoist',
  ],
  async run(call) {
    const wanted = call.choice('stage', ['1', '2', '3'] as const)
    const stage = wanted === undefined ? undefined : (Number(wanted) as Stage)
    const named = scheduleCall(call)
    const device = call.choice('device', DEVICE_KINDS) ?? 'cpu'
    const after = call.one('after')
    const program = await loadFile(call.args[0]!, call)
    const text = await within(program, async () => {
      const kernel = chosenKernel(program, call)
      const sizes = sizesFor(call, kernel, device)
      if (!named || !isChosen(kernel, named)) checkDeciding(call, kernel, false)
      const choice =
        named && isChosen(kernel, named) ? (await chosen(kernel, named, device, sizes)).chosen : null
      const requested = choice ? { name: choice.schedule, args: choice.args } : named
      if (after === undefined) return scheduled(kernel, requested, undefined).kernel.show(stage ?? 1)
      if (/^\d+$/.test(after)) {
        const under = requested ? firstSteps(kernel, Number(after), requested) : noSteps(kernel, after)
        return under.show(stage ?? 1)
      }
      return afterPass(call, scheduled(kernel, requested, undefined).kernel, after, stage, device)
    })
    call.io.out(`${text.trimEnd()}\n`)
    return EXIT.ok
  },
}

function firstSteps(kernel: Kernel, count: number, requested: ScheduleCall): Kernel {
  const { name } = requested
  const steps = kernel.steps(name, ...argumentsOf(kernel, requested))
  if (count > steps.length)
    fail({
      code: 'show/no-step',
      message: `there is no step ${count}: schedule ${name} has ${steps.length}`,
      expected: `0 to ${steps.length}`,
    })
  return kernel.apply(steps.slice(0, count))
}

function noSteps(kernel: Kernel, after: string): Kernel {
  if (after === '0') return kernel
  return fail({
    code: 'show/no-step',
    message: `there is no step ${after}: no schedule is given`,
    hint: `choose one with --schedule${kernel.schedules.length > 0 ? `: ${kernel.schedules.join(', ')}` : ''}`,
  })
}

function afterPass(
  call: Call,
  kernel: Kernel,
  pass: string,
  stage: Stage | undefined,
  device: Device['kind'],
): string {
  if (!PASSES.includes(pass))
    misused({
      command: call.command,
      message: `there is no step or pass ${pass}`,
      expected: 'the number of a step, or a pass as the help lists them',
      lookup: { name: pass, candidates: PASSES },
    })
  const at = LOOPS.includes(pass) ? 2 : 3
  if (stage !== undefined && stage !== at)
    misused({
      command: call.command,
      message: `pass ${pass} gives stage ${at}, not ${stage}`,
      hint: 'leave out --stage',
    })
  if (pass === 'positions') return kernel.show(2)
  let result: Kernel2 | Plan | undefined
  kernel.compilation.observe(
    (name, now) => {
      if (name === pass) result = now
    },
    TARGETS[targetOf({ kind: device })].lowering,
  )
  return result!.stage === 2 ? print2(result as Kernel2) : print3(result as Plan)
}
