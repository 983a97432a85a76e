/**
 * Resolution of `.spt` schedules to steps: parameters are evaluated, used schedules are expanded, and stages are
 * separated. Blocks for the parts of a buffer are resolved after the steps before them have been applied.
 */
import { failAt, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { callInCall, callText } from '../../ast/nodes/expanded-calls.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { printStep } from '../../ast/print/print.ts'
import { inOrder } from '../../elaborate/formats/format-uses.ts'
import type { Schedule } from '../../elaborate/index.ts'
import { countText, MAX_STEPS } from '../../ir/code-size-budgets.ts'
import { iterationsOf } from '../../ir/coordinates/stage1-tree.ts'
import { labelled } from '../../ir/formats/format-tables.ts'
import { type CoordStep, refuseLate } from '../coordinates/steps.ts'
import { callNames, memberName, type Now } from '../names/call-names.ts'
import { nestNames, nestsWriting } from '../names/nest-names.ts'
import { type Program, partNames, plainNames } from '../names/part-names.ts'
import { iterationsOver, partsOf } from '../names/parts.ts'
import { endsCoordinates } from '../primitives.ts'
import type { Located } from '../refusals.ts'
import { type CalledStep, callEnv, NewNames, withoutCalls } from './function-calls.ts'
import { valuesOf } from './parameter-values.ts'
import { arithmetic, integer, roomOf } from './step-arguments.ts'
import type { LoopStep } from './step-data.ts'
import type { Env, Where } from './step-fields.ts'
import {
  checkCount,
  countOf,
  fieldsOf,
  parametersOf,
  tooManySteps,
  usedBy,
  withParameters,
} from './step-fields.ts'
import { isOfCallees, isOnCoords, isOnLoops } from './step-stages.ts'

export type Step =
  | (Placed & { readonly stage: 1; readonly step: CoordStep })
  | (Placed & { readonly stage: 2; readonly step: LoopStep })
  /** Steps that depend on the parts of a buffer. */
  | {
      readonly stage: 'parts'
      readonly text: string
      readonly span?: Span | undefined
      readonly steps: (now: Now) => readonly Step[]
    }

interface Placed {
  readonly where?: Where | undefined
}

/** Returns the steps of a schedule with the given arguments; missing arguments have their default values. */
export function stepsOf(schedule: Schedule, args: readonly (number | undefined)[] = []): Step[] {
  return stepsIn(schedule, args, { onLoops: false, newNames: new NewNames(schedule.made) })
}

interface Progress {
  onLoops: boolean
  readonly newNames: NewNames
  /** The formats in which schedules of callees store tensors, with the names of the call: several calls may share a tensor. */
  readonly stored?: Map<string, NewNames>
}

function stepsIn(schedule: Schedule, args: readonly (number | undefined)[], progress: Progress): Step[] {
  checkCount(schedule)
  const env: Env = {
    schedule,
    values: valuesOf(schedule, args),
    passed: new Map(),
    names: plainNames,
    constant: plainNames.constant,
    path: '',
    calls: [],
    callParameters: () => [],
  }
  return schedule.steps.flatMap((s, k) => {
    if (!isOfCallees(s)) return convert(s, env, progress)
    // Steps on coordinates of all callees come first.
    if (k > 0 && isOfCallees(schedule.steps[k - 1]!)) return []
    const end = schedule.steps.findIndex((x, j) => j > k && !isOfCallees(x))
    return inCallees(schedule.steps.slice(k, end < 0 ? undefined : end), env, progress)
  })
}

/** Returns the steps of callees' schedules, under the names of the calls: first all steps on coordinates. */
function inCallees(uses: readonly Ast.Step[], env: Env, progress: Progress): Step[] {
  const at: { now?: Now } = {}
  const flat = (s: Ast.Step, own: Env, newNames: NewNames): readonly Called[] => {
    if (s.kind !== 'use') return [{ step: s, env: own, newNames }]
    const callees = own.schedule.calls.get(s.schedule)
    if (!callees) {
      const used = usedBy(s, own.schedule)
      const inside = used.kernel === null ? callEnv(s, used, own, newNames) : withArguments(s, used, own)
      return used.steps.flatMap((x) => flat(x, inside, newNames))
    }
    return callees.flatMap((c) => {
      const call = own.call ? callInCall(c.call, own.call) : c.call
      const calls = [
        { span: s.span, text: 'used here' },
        { span: call.span, text: `${callText(call)} is called here` },
      ]
      const names = callNames(call, () => at.now!)
      const inside = { ...withArguments(s, c.schedule, own), names, call, calls: [...calls, ...own.calls] }
      const fresh = new NewNames(c.schedule.made)
      return c.schedule.steps.flatMap((x) => flat(x, inside, fresh))
    })
  }
  /** The calls with steps on loops so far. */
  const onLoops = new Set<NewNames>()
  const [early, late]: [Called[], Called[]] = [[], []]
  for (const s of uses.flatMap((use) => flat(use, env, progress.newNames))) {
    if (isOnLoops(s.step, s.env.schedule, progress.onLoops)) onLoops.add(s.newNames)
    ;(onLoops.has(s.newNames) ? late : early).push(s)
  }
  const stored = new Map<string, NewNames>()
  return [...early, ...late].map(({ step, env: own, newNames }): Step => {
    const before = { onLoops: progress.onLoops, newNames, stored }
    progress.onLoops ||= isOnLoops(step, own.schedule, before.onLoops)
    const steps = (now: Now): Step[] => {
      at.now = now
      return convert(step, own, before)
    }
    return { stage: 'parts', text: printStep(step), span: step.span, steps }
  })
}

interface Called {
  readonly step: Ast.Step
  readonly env: Env
  readonly newNames: NewNames
}

/** Returns the environment of a used schedule's steps. */
const withArguments = (step: Ast.UseStep, used: Schedule, env: Env): Env => ({
  ...env,
  schedule: used,
  passed: new Map(),
  values: valuesOf(used, argumentsOf(step, used, env)),
})

const argumentsOf = (step: Ast.UseStep, used: Schedule, env: Env): readonly (number | undefined)[] =>
  inOrder(step.args, used.params).map((a) =>
    !a || a.value.kind === 'group' ? undefined : integer(a.value, env),
  )

/** Returns the steps of the block for each part: first the steps on coordinates, for all parts. */
function eachPart(step: Ast.EachStep, env: Env, { onLoops, newNames }: Progress, now: Now): Step[] {
  const flat = withoutCalls(step.steps, env.schedule, newNames)
  const first = flat.findIndex((s) => isOnLoops(s.step, s.schedule, onLoops))
  const split = first < 0 ? flat.length : first
  const progress: Progress = { onLoops, newNames }
  const inParts = (steps: readonly CalledStep[], at: Now, made: Iterable<string>) => {
    const parts = partsOf(at.kernel, step.buffer)
    const count = steps.reduce(
      (n, s) => n + (s.step.kind === 'use' ? countOf(usedBy(s.step, s.schedule)) : 1),
      0,
    )
    if (parts.length * count > MAX_STEPS)
      tooManySteps(
        `${countText(count)} steps for each of ${countText(parts.length)} parts of ${step.buffer.name} are ${countText(parts.length * count)}`,
        step,
        'make fewer parts',
      )
    const names = parts.map((part) => partNames(step.as.name, part, at, env.names, made))
    const all = names.flatMap((n) => {
      const inside: Env = { ...env, names: n, constant: n.constant }
      return steps.flatMap((s) => convert(s.step, s.inside(inside), progress))
    })
    return { all, made: names[0]!.made }
  }
  const { all, made } = inParts(flat.slice(0, split), now, [])
  const { text, span } = { text: printStep(step), span: step.span }
  const rest = (at: Now): Step[] => inParts(flat.slice(split), at, made).all
  // Parts that are stored in parts again have other names.
  return [...all, { stage: 'parts', text, span, steps: rest }]
}

/** Returns the steps of the block for each loop nest that writes the buffer. Roles name the loops before each step. */
function eachNest(step: Ast.EachStep, env: Env, { newNames }: Progress, { loops }: Now): Step[] {
  const nests = nestsWriting(loops, step.buffer)
  const count = nests.length * step.steps.length
  if (count > MAX_STEPS)
    tooManySteps(
      `${countText(step.steps.length)} steps for each of ${countText(nests.length)} nests are ${countText(count)}`,
      step,
      'make fewer parts',
    )
  return nests.flatMap((nest) => {
    const made = new Set<string>()
    return step.steps.map((s): Step => {
      const steps = (now: Now): Step[] => {
        const names = nestNames(step.as.name, nest, now.loops, env.names, made, nests.length > 1)
        return convert(s, { ...env, names }, { onLoops: true, newNames })
      }
      return { stage: 'parts', text: printStep(s), span: s.span, steps }
    })
  })
}

/** Converts a step; the results have the parameters that their errors report. */
function convert(step: Ast.Step, env: Env, progress: Progress): Step[] {
  // Steps that consist of other steps have the parameters of those steps.
  if (step.kind !== 'as' && step.kind !== 'step') return converted(step, env, progress)
  const parameters = () => [...new Set([...parametersOf(step, env), ...env.callParameters()])]
  const where: Where = { parameters, calls: env.calls }
  const made = withParameters(where, () => converted(step, env, progress))
  return env.values.size === 0 && env.calls.length === 0 ? made : made.map((s) => ({ ...s, where }))
}

function converted(step: Ast.Step, env: Env, progress: Progress): Step[] {
  const { span } = step
  const { names } = env
  const ofPart = (b: Ast.Ident): Ast.Ident => ({ ...b, name: names.buffer(b) })
  const early = (what: string): void => {
    if (progress.onLoops) refuseLate(what, step, 'the top of the schedule')
  }
  switch (step.kind) {
    case 'as': {
      early('as')
      const room = step.live?.capacity
      const { format, args } = env.schedule.formats.get(step)!
      const buffer = names.buffer(step.buffer)
      const values = args.map((a, k) =>
        typeof a === 'string'
          ? a
          : format.params[k]!.kind === 'real'
            ? arithmetic(a, env, true)
            : integer(a, env),
      )
      const size = room && roomOf(room.positions, env)
      // The numbers of two calls may differ under one text.
      const text = `${printStep({ ...step, buffer: { ...step.buffer, name: buffer } })} ${JSON.stringify([values, size])}`
      const before = progress.stored?.get(text)
      if (before && before !== progress.newNames) return []
      progress.stored?.set(text, progress.newNames)
      return [
        {
          stage: 1,
          step: {
            kind: 'as',
            buffer,
            format,
            args: values,
            ...(step.live
              ? { live: step.live.inPlace ? ('live in place' as const) : ('live' as const) }
              : {}),
            ...(room && { [room.inAll ? 'total' : 'capacity']: size }),
            ...(step.carried.length && { for: step.carried.map((it) => names.nest(it)) }),
            span,
          },
        },
      ]
    }
    case 'use': {
      const used = usedBy(step, env.schedule)
      if (used.kernel !== null) return stepsIn(used, argumentsOf(step, used, env), progress)
      const inside = callEnv(step, used, env, progress.newNames)
      return used.steps.flatMap((s) => convert(s, inside, progress))
    }
    case 'each': {
      const before = { ...progress }
      progress.onLoops ||= isOnLoops(step, env.schedule, before.onLoops)
      const of = { ...step, buffer: ofPart(step.buffer) }
      const steps = (now: Now): Step[] => {
        const own = { ...of, buffer: { ...of.buffer, name: memberName(of.buffer.name, now, span) } }
        return step.what === 'nest' ? eachNest(own, env, before, now) : eachPart(own, env, before, now)
      }
      return [{ stage: 'parts', text: printStep(step), span, steps }]
    }
    case 'merge_parts':
      progress.onLoops = true
      return [
        {
          stage: 'parts',
          text: printStep(step),
          span,
          steps: (now) => {
            const buffer = ofPart(step.buffer)
            return mergeParts({ span, buffer: { ...buffer, name: memberName(buffer.name, now, span) } }, now)
          },
        },
      ]
    case 'step': {
      const onCoords = isOnCoords(step.word, progress.onLoops)
      if (onCoords) early(step.word)
      else progress.onLoops ||= endsCoordinates(step.word)
      const made = { kind: step.word, ...fieldsOf(step.args, env), span }
      return [onCoords ? { stage: 1, step: made as CoordStep } : { stage: 2, step: made as LoopStep }]
    }
  }
}

// Expansion of `merge parts of A` into steps on loops.

/** Returns a `merge` of the copies of each iteration over the parts. Throws `schedule/nothing-to-merge`. */
export function mergeParts(
  step: Located & { readonly buffer: Located & { readonly name: string } },
  now: Program,
): readonly Step[] {
  const parts = partsOf(now.kernel, step.buffer)
  const labels = parts.map((p) => p.label)
  const isBuiltAtRunTime = parts.at(-1)!.along !== undefined
  const tops = new Set(now.loops.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : [])))
  const last = labels.at(-1)!
  const copies = isBuiltAtRunTime ? iterationsOver(parts.at(-1)!, now.kernel) : iterationsOf(now.kernel.body)
  const bases = copies.flatMap(({ name }) =>
    name.endsWith(`_${last}`) ? [name.slice(0, -last.length - 1)] : [],
  )
  const steps = bases.flatMap((base): Step[] => {
    const nests = labels.map((l) => labelled(base, l)).filter((n) => tops.has(n))
    return nests.length > 1 ? [{ stage: 2, step: { kind: 'merge', nests, span: step.span } }] : []
  })
  if (steps.length > 0) return steps
  return failAt('schedule/nothing-to-merge', step.span, {
    message: `${step.buffer.name} has no two parts with separate loop nests`,
    expected: 'a buffer in several parts, and iterations over each',
  })
}
