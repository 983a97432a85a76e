/** Schedules with arguments as text: `gpu(8, cols = 32)`. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel } from './kernel.ts'

export interface ScheduleCall {
  readonly name: string
  /** Positional arguments; `undefined`: the parameter's default. */
  readonly args: readonly (number | undefined)[]
  readonly named?: ReadonlyMap<string, number>
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
