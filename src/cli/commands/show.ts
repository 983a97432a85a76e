import type { Kernel } from '../../api/kernels/kernel.ts'
import { argumentsOf, type ScheduleCall } from '../../api/kernels/schedule-call.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { TARGETS, targetOf } from '../../backends/targets/index.ts'
import { print2, print3 } from '../../ir/print/print-stage2.ts'
import type { Kernel2, Kernel3 } from '../../ir/statements/loops.ts'
import { LAUNCH_OUTLINING, PASSES, POSITIONS } from '../../lower/passes.ts'
import type { Device } from '../../runtime/device.ts'
import type { Call, CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import {
  BIND,
  checkSelectionInputs,
  DEVICE_PROPERTIES,
  KERNEL,
  SELECTION_SIZES,
  TRUST,
} from '../arguments/options.ts'
import { DEFAULT_SURVEY, SPACE, spaceName, spaceOf } from '../arguments/schedule-call.ts'
import { EXIT } from '../output/failure.ts'
import { bindOptions, checkNames, readInputs } from '../run/bind-options.ts'
import { applySchedule, isDispatched, type KernelRequest, withKernel } from '../scheduled-kernel.ts'

type Stage = 1 | 2 | 3

const MAX_SURVEYED = 1_000_000

/** Passes by the stage that their result is at. */
const LOOPS = PASSES.slice(0, PASSES.indexOf(LAUNCH_OUTLINING))
const MEMORY = PASSES.slice(LOOPS.length)

/** Analyses of the unscheduled kernel. */
const ANALYSES = ['pit', 'attributes']

export const show: CommandSpec = {
  name: 'show',
  args: 'FILE',
  count: [1, 1],
  summary: 'Print a kernel at a stage of its compilation',
  options: optionTable`
    ${KERNEL}
    --schedule <S>  [without space ${ANALYSES}]  Under this schedule: its name, or gpu(8, 32) with arguments
      (default: none)
    ${SPACE}  [without ${ANALYSES}]  Print the decisions of
      ${SPACE.about[0]!.toLowerCase()}${SPACE.about.slice(1)}
    ${BIND}  [with space]  With --space: data for the conditions of the space
    ${SELECTION_SIZES}  [without ${ANALYSES}]  A size or a statistic (longest(j)=700), for automatic
      selection or for the space
    ${DEVICE_PROPERTIES}  [without ${ANALYSES}]
    --device <D>  [without ${ANALYSES}]  Target device: cpu, webgpu or cuda (default: cpu)
    --survey <N>  [with space]  With --space: number of points to test (default: ${DEFAULT_SURVEY});
      rejected points are counted by error code
    --pit  Print the permutable dimensions of tensors, with formats that gather along those dimensions
    --attributes  [without pit]  Print sparsity propagation: zero and constant elements, dead elements, and
      masks for iterations
    --iteration <T>  [with ${ANALYSES}]  With --pit or --attributes: only this iteration
    --tile <AXIS=N>  [repeats, with pit]  With --pit: the extent of the dense tile along an axis (default:
      32)
    --stage <N>  [without space ${ANALYSES}]  1 coordinates, 2 positions, 3 memory (default: 1, or the stage
      of the pass)
    --after <STEP>  [without space ${ANALYSES}]  Print the kernel after this step number of the schedule, or
      after this lowering pass
    ${TRUST}
  `,
  notes: [
    'With --space, the command prints the decisions of the space with their values and conditions, and sample points.',
    'With --pit, the command analyses the unscheduled kernel. For each dimension, it prints the dimensions that must be\npermuted in the same way, or the reason why a permutation is not legal.',
    'With --attributes, the command analyses the unscheduled kernel without data, and prints why a mask is rejected.',
    `Step 0 is the unscheduled kernel. The steps of a \`use\` are counted individually.\nPasses to stage 2: ${LOOPS.join(', ')}.\nPasses to stage 3: ${MEMORY.join(', ')}.`,
  ],
  examples: [
    'spt show kernel.spt',
    'spt show kernel.spt --schedule gpu --stage 2 --after 3',
    'spt show kernel.spt --schedule gpu --after common-subexpressions',
    'spt show kernel.spt --pit --tile i=32 --tile k=64',
    'spt show kernel.spt --attributes',
    'spt show kernel.spt --space gpu_space --device cuda --bind A=graph.mtx --size d=64',
  ],
  async run(call) {
    const stageOption = call.choice('stage', ['1', '2', '3'] as const)
    const stage = stageOption === undefined ? undefined : (Number(stageOption) as Stage)
    const device = call.choice('device', DEVICE_KINDS) ?? 'cpu'
    const after = call.one('after')
    const surveySize = call.integer('survey', 0, MAX_SURVEYED)
    const { files } = bindOptions(call)
    const text = await withKernel(call, device, async (request) => {
      const { source: kernel, requested: named, program } = request
      if (call.flag('attributes') || call.flag('pit')) {
        const { attributesReport, permutationReport, sourceLocator } = await import('../run/analyses.ts')
        const [iteration, locate] = [call.one('iteration'), sourceLocator(program.sources)]
        return call.flag('pit')
          ? permutationReport(kernel, iteration, call.numbers('tile', 'N'), locate)
          : attributesReport(kernel, iteration, locate)
      }
      if (call.flag('space')) return spaceText(request, files, surveySize)
      const sizes = request.selectionInputs()
      const isSelected = named !== undefined && isDispatched(kernel, named)
      if (!isSelected) checkSelectionInputs(call, kernel, false)
      const choice = isSelected ? (await request.select(device, sizes)).selection : null
      const requested = choice?.schedule ? { name: choice.schedule, args: choice.args } : named
      if (after === undefined) return applySchedule(kernel, requested, undefined).kernel.show(stage ?? 1)
      if (/^\d+$/.test(after)) {
        const prefix = requested
          ? applyFirstSteps(kernel, Number(after), requested)
          : unscheduledStep(kernel, after)
        return prefix.show(stage ?? 1)
      }
      return afterPass(call, applySchedule(kernel, requested, undefined).kernel, after, stage, device)
    })
    call.io.out(`${text.trimEnd()}\n`)
    return EXIT.ok
  },
}

async function spaceText(
  request: KernelRequest,
  files: ReadonlyMap<string, string>,
  surveySize: number | undefined,
): Promise<string> {
  const { call, source: kernel, kind: device } = request
  const selection = request.selectionInputs()
  checkNames(kernel.source, files.keys(), [], kernel.formatInputs())
  const sizes = new Map(Object.entries(selection.params))
  const tensors = await readInputs(kernel.source, files, sizes, kernel.formatInputs())
  const space = await spaceOf(call, kernel, device, { ...selection, tensors })
  const { spaceReport } = await import('../tune/space-report.ts')
  const label = spaceName(kernel, space)
  return spaceReport(space, label, device, surveySize, (line) => call.io.progress?.(line))
}

function applyFirstSteps(kernel: Kernel, count: number, requested: ScheduleCall): Kernel {
  const { name } = requested
  const steps = kernel.steps(name, ...argumentsOf(kernel, requested))
  if (count > steps.length)
    failWith('show/no-step', `there is no step ${count}: schedule ${name} has ${steps.length}`, {
      expected: `0 to ${steps.length}`,
    })
  return kernel.apply(steps.slice(0, count))
}

function unscheduledStep(kernel: Kernel, step: string): Kernel {
  if (step === '0') return kernel
  return failWith('show/no-step', `there is no step ${step}: no schedule is given`, {
    hint: `choose a schedule with --schedule${kernel.schedules.length > 0 ? `: ${kernel.schedules.join(', ')}` : ''}`,
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
    call.reject(`there is no step or pass ${pass}`, {
      expected: 'the number of a step, or a pass that the help lists',
      lookup: { name: pass, candidates: PASSES },
    })
  const resultStage = LOOPS.includes(pass) ? 2 : 3
  if (stage !== undefined && stage !== resultStage)
    call.reject(`pass ${pass} gives stage ${resultStage}, not ${stage}`, { hint: 'leave out --stage' })
  if (pass === POSITIONS) return kernel.show(2)
  let result: Kernel2 | Kernel3 | undefined
  kernel.compilation.observe(
    (name, program) => {
      if (name === pass) result = program
    },
    TARGETS[targetOf({ kind: device })].lowering,
  )
  return result!.stage === 2 ? print2(result as Kernel2) : print3(result as Kernel3)
}
