/** Steps on loops, from text to data: what loops, nests and buffers are called now, arguments evaluated. */
import type * as Ast from '../ast/nodes.ts'
import type { Argument, Family, Schedule } from '../elaborate/index.ts'
import type { ThreadAxis } from '../ir/expr.ts'
import type { Names } from './part-names.ts'
import { integer, type Known } from './step-arguments.ts'
import type { CacheReadStep, CopyLayout, LoopStep } from './steps.ts'

/** Where a step stands. */
export interface Env extends Known {
  readonly schedule: Schedule
  readonly names: Names
}

export type StepOnLoops = Exclude<
  Ast.Step,
  { readonly kind: 'as' | 'attach' | 'use' | 'each' | 'merge_parts' }
>

export function loopStep(step: StepOnLoops, env: Env): LoopStep {
  const { span } = step
  const { names } = env
  const ref = (r: Ast.LoopRef): string => names.loop(r)
  const into = (name: Ast.Ident | null): { readonly into?: string } =>
    name ? { into: names.fresh(name) } : {}
  switch (step.kind) {
    case 'merge':
      return { kind: 'merge', nests: step.nests.map((n) => names.nest(n)), span }
    case 'reorder':
      return { kind: 'reorder', loops: step.loops.map(ref), span }
    case 'serpentine':
      return { kind: 'serpentine', loop: ref(step.loop), by: integer(step.by, env), span }
    case 'fuse':
      return { kind: 'fuse', loops: step.loops.map(ref), ...into(step.into), span }
    case 'split':
      return {
        kind: 'split',
        loop: ref(step.loop),
        by: integer(step.by, env),
        ...(step.into ? { into: [names.fresh(step.into[0]), names.fresh(step.into[1])] as const } : {}),
        span,
      }
    case 'tile':
      return {
        kind: 'tile',
        loops: step.loops.map(ref),
        by: step.by.map((e) => integer(e, env)),
        ...(step.into ? { into: step.into.map((i) => names.fresh(i)) } : {}),
        span,
      }
    case 'bind':
      return {
        kind: 'bind',
        bindings: step.binds.map((b) => ({ loop: ref(b.loop), to: b.to.name as ThreadAxis })),
        span,
      }
    case 'unroll':
      return {
        kind: 'unroll',
        loop: ref(step.loop),
        ...(step.by ? { by: integer(step.by, env) } : {}),
        ...(step.predicated ? { predicated: true } : {}),
        span,
      }
    case 'vectorize':
      return { kind: 'vectorize', loop: ref(step.loop), span }
    case 'require':
      return {
        kind: 'require',
        size: step.size.name,
        relation: step.relation,
        by: integer(step.by, env),
        span,
      }
    case 'tensorize': {
      const instr = instanceOf(env.schedule.instrs.get(step.instr.name.name)!, step.instr, env)
      return { kind: 'tensorize', loop: ref(step.loop), instr, span }
    }
    case 'accumulate':
      return {
        kind: 'accumulate',
        buffer: names.buffer(step.buffer),
        loop: ref(step.loop),
        ...(step.by ? { by: integer(step.by, env) } : {}),
        ...(step.within ? { within: ref(step.within) } : {}),
        ...into(step.into),
        span,
      }
    case 'cluster':
      return { kind: 'cluster', loop: ref(step.loop), by: integer(step.by, env), span }
    case 'pipeline':
      return { kind: 'pipeline', loop: ref(step.loop), by: integer(step.by, env), span }
    case 'cache_read':
    case 'cache_write':
      return {
        kind: step.kind,
        buffer: names.buffer(step.buffer),
        at: ref(step.at),
        ...memory(step.memory, env),
        ...(step.kind === 'cache_read' ? layout(step.layout, env) : {}),
        ...into(step.into),
        span,
      }
    case 'compute_at':
      return { kind: 'compute_at', nest: names.nest(step.iteration), at: ref(step.at), span }
    case 'fission':
      return {
        kind: 'fission',
        loop: ref(step.loop),
        after: typeof step.after === 'number' ? step.after : names.nest(step.after),
        span,
      }
    case 'rfactor':
      return {
        kind: 'rfactor',
        loop: ref(step.loop),
        ...into(step.into),
        span,
      }
    case 'atomic':
      return { kind: 'atomic', buffer: names.buffer(step.buffer), span }
    case 'combine': {
      const nest = step.nest ? { nest: names.nest(step.nest) } : {}
      return { kind: 'combine', buffer: names.buffer(step.buffer), ...nest, span }
    }
  }
}

function layout({ transposed, stride, by, padded }: Ast.CopyLayout, env: Env): CopyLayout {
  return {
    ...(transposed ? { transposed } : {}),
    ...(stride ? { stride: integer(stride, env) } : {}),
    ...(by ? { by: integer(by, env) } : {}),
    ...(padded ? { padded: integer(padded, env) } : {}),
  }
}

function memory(use: Ast.Instance, env: Env): Pick<CacheReadStep, 'scope' | 'memory'> {
  const { name } = use.name
  if (name === 'shared' || name === 'register') return { scope: name }
  const declared = instanceOf(env.schedule.memories.get(name)!, use, env)
  return { scope: declared.scope, memory: declared }
}

/** The memory or instruction that a step names; its arguments fit, except that a value may be none. */
function instanceOf<T>(family: Family<T>, use: Ast.Instance, env: Env): T {
  const args = use.args.map((e, k): Argument => {
    const types = family.params[k]!.types
    const type = types?.find((t) => e.kind === 'name' && e.name === t)
    return type ?? integer(e, env)
  })
  return family.of(args, use.span)
}
