/** Schedules and spaces (`--space`) with arguments, as options name them. */

import type { SelectionContext, SelectionInputs } from '../../api/dispatch/device-facts.ts'
import { flatInputs } from '../../api/inputs/flat-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { KernelSpace } from '../../search/types.ts'
import type { Call, OptionSpec } from './command.ts'

export interface ScheduleCall {
  readonly name: string
  /** Positional arguments; `undefined`: the parameter's default. */
  readonly args: readonly (number | undefined)[]
  readonly named?: ReadonlyMap<string, number>
}

/** `S`, `S(1, 2)` or `S(1, lanes = 2)`, as reports print it. */
export function scheduleCall(
  call: Call,
  option: 'schedule' | 'space' = 'schedule',
): ScheduleCall | undefined {
  const text = call.one(option)
  if (text === undefined) return undefined
  return (
    parseScheduleCall(text) ??
    call.reject(`--${option} ${text} is not a ${option}`, {
      expected: 'a name, or a name with integers by place, then by name: gpu(8, 32), gpu(8, cols = 32)',
    })
  )
}

/** Parses a call such as `name(1, b = 2)`; `null` if the text is not one. */
export function parseScheduleCall(text: string): ScheduleCall | null {
  const match = /^\s*([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?\s*$/.exec(text)
  const list = match?.[2]?.trim() ?? ''
  const args = list === '' ? [] : list.split(',').map((a) => /^\s*(?:(\w+)\s*=\s*)?([+-]?\d+)\s*$/.exec(a))
  const positional = args.filter((a, k) => a && a[1] === undefined && args.slice(0, k).every((b) => !b?.[1]))
  const named = new Map(args.flatMap((a) => (a?.[1] === undefined ? [] : [[a[1], Number(a[2])] as const])))
  const allIntegers = args.every((a) => a && Number.isSafeInteger(Number(a[2])))
  if (!match || !allIntegers || positional.length + named.size < args.length) return null
  return { name: match[1]!, args: positional.map((a) => Number(a![2])), named }
}

/** The arguments in the order of the parameters of a schedule, or space. @throws SptError `schedule/arguments` */
export function argumentsOf(
  kernel: Kernel,
  { name, args, named = new Map() }: ScheduleCall,
  kind: 'schedule' | 'space' = 'schedule',
): readonly (number | undefined)[] {
  if (named.size === 0) return args
  const params = kernel.parameters(name).map((p) => p.name)
  for (const n of named.keys())
    if (params.indexOf(n) < args.length)
      failWith(
        'schedule/arguments',
        params.includes(n)
          ? `${n} of ${kind} ${name} is given by place and by name`
          : `${kind} ${name} has no parameter ${n}`,
        {
          ...(params.includes(n) ? {} : { lookup: { name: n, candidates: params } }),
          expected: params.length > 0 ? `some of ${params.join(', ')}` : 'no arguments',
          hint: 'give each parameter once',
        },
      )
  return params.map((p, k) => args[k] ?? named.get(p))
}

// `--space`: a space of the kernel, or its sketches.

const SKETCHES = 'sketches'
/** Default number of points whose steps `spt show --space` applies. */
export const DEFAULT_SURVEY = 100

export const SPACE: OptionSpec = {
  flags: '--space <NAME>',
  about: `A space of the kernel, gpu(16) or gpu(rows = 16) with arguments, or ${SKETCHES}`,
}

/** Display name of a space; the space of sketches is named like the kernel and shown as `sketches`. */
export const spaceName = (kernel: Kernel, { name }: KernelSpace<Kernel>): string =>
  name === kernel.name ? SKETCHES : name

/** The requested or default space. @throws SptError `api/unknown-space`, `space/empty`, `choose/…`, as `sketches` */
export async function spaceOf(
  call: Call,
  kernel: Kernel,
  context: SelectionContext,
  inputs: SelectionInputs,
): Promise<KernelSpace<Kernel>> {
  const requested = scheduleCall(call, 'space')
  if (!requested) {
    const { usualSpace } = await import('../../search/spaces/sketches.ts')
    return usualSpace(kernel, context, inputs)
  }
  const { name } = requested
  if (name !== SKETCHES || kernel.spaces.includes(name)) {
    if (!kernel.spaces.includes(name)) kernel.space(name)
    return kernel.space(name, ...argumentsOf(kernel, requested, 'space')).bind(context, ...flatInputs(inputs))
  }
  if (requested.args.length > 0 || (requested.named?.size ?? 0) > 0)
    call.reject(`--space ${call.one('space')}: ${SKETCHES} take no arguments`, {
      expected: `--space ${SKETCHES}`,
    })
  const { sketchesFor } = await import('../../search/spaces/sketches.ts')
  return sketchesFor(kernel, context, inputs)
}
