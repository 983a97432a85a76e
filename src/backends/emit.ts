/**
 * A plan → the texts of its launches, with the signature of each entry. Everything a device needs to run the
 * plan and nothing that only the compiler knows.
 */
import { fail, type Span } from '../ast/diagnostic.ts'
import { accessesOf, type BufferAccess } from '../ir/accesses.ts'
import type { Expr } from '../ir/expr.ts'
import { freeVars, walkExpr } from '../ir/expr-tree.ts'
import type { Buffer, Launch, Plan, PlanStep, Stmt } from '../ir/loops.ts'
import { type Body, bodiesOf, exprsOf, piecesOf, walkStmts } from '../ir/tree.ts'
import { capabilitiesOf } from './instr-calls.ts'
import type { ArgSpec, ModuleText } from './module.ts'
import { cudaModule } from './modules/cuda.ts'
import { jsModule } from './modules/js.ts'
import { wgslModules } from './modules/wgsl.ts'
import { CUDA, WARP } from './targets/cuda.ts'
import { wgsl } from './targets/wgsl.ts'
import { vectorAccesses } from './vectorize-accesses.ts'

/** What one launch touches. */
export interface LaunchUse {
  readonly launch: Launch
  readonly buffers: readonly { readonly buffer: Buffer; readonly access: 'read' | 'read_write' }[]
  readonly scalars: Plan['params']
}

/** Which buffers and parameters each launch of the plan uses, in the plan's order. */
export function usesOf(plan: Plan): LaunchUse[] {
  return plan.steps.flatMap((step) => (step.kind === 'launch' ? [useOf(plan, step)] : []))
}

function useOf(plan: Plan, launch: Launch): LaunchUse {
  const read = new Set<string>()
  const written = new Set<string>()
  for (const a of accessesOf(launch.body))
    if (!isDescribed(a)) (a.mode === 'write' ? written : read).add(a.buffer)
  const vars = new Set<string>()
  walkStmts(launch.body, (s) => {
    for (const e of exprsOf(s)) walkExpr(e, (x) => x.kind === 'var' && vars.add(x.name))
  })
  // The kernel decodes its block index from the grid's extents.
  for (const g of launch.grid) for (const v of freeVars(g as Expr)) vars.add(v)
  return {
    launch,
    buffers: plan.buffers.flatMap((buffer): LaunchUse['buffers'] =>
      written.has(buffer.name)
        ? [{ buffer, access: 'read_write' }]
        : read.has(buffer.name)
          ? [{ buffer, access: 'read' }]
          : [],
    ),
    scalars: plan.params.filter((p) => vars.has(p.name)),
  }
}

/** Whether an instruction moves boxes of the buffer, and needs no address of it. */
function isDescribed({ stmt: s, buffer, whole }: BufferAccess): boolean {
  const pieces = whole && s.kind === 'instr' ? piecesOf(s).filter((p) => p.kind !== 'value') : []
  const own = pieces.filter((p) => p.buffer === buffer)
  return own.length > 0 && own.every((p) => p.kind === 'map')
}

export const argsOf = (use: LaunchUse): ArgSpec[] => [
  ...use.buffers.map(
    (b): ArgSpec => ({ kind: 'buffer', name: b.buffer.name, dtype: b.buffer.dtype, access: b.access }),
  ),
  ...use.scalars.map((p): ArgSpec => ({ kind: 'scalar', name: p.name, dtype: p.dtype })),
]

/** What every device of a target has that plans for it may use. */
export const LANES: Readonly<
  Record<ModuleText['target'], { readonly lanes?: number; readonly promote?: boolean }>
> = {
  // Its variables are doubles, and no engine keeps an element of a typed array in one.
  js: { promote: true },
  wgsl: {},
  cuda: { lanes: WARP },
}

/** What a device has that the texts for it may use. */
export interface TextOptions {
  /** WGSL: f16 in memory is f16, and not a word of 32 bits. Left out: where instructions need it. */
  readonly f16?: boolean | undefined
}

/** Prints all launches of a plan for a target: one module, or (WGSL) one for each launch. */
export function emit(plan: Plan, target: ModuleText['target'], options: TextOptions = {}): ModuleText[] {
  if (target === 'js') return [jsModule(plan, usesOf(plan))]
  if (target === 'wgsl') {
    refuseF64(plan)
    refuseDeep(plan)
  }
  const table = wgsl(options.f16 ?? (target === 'wgsl' && usesOf(plan).some(needsF16)))
  const vectors = vectorAccesses(plan, target === 'cuda' ? CUDA : table)
  const uses = usesOf(vectors)
  return target === 'cuda' ? [cudaModule(vectors, uses)] : wgslModules(vectors, uses, table)
}

const needsF16 = (use: LaunchUse): boolean => capabilitiesOf(use, 'wgsl').some((c) => c.name === 'f16')

/** WGSL has no 64-bit floats, in memory or in registers. */
function refuseF64(plan: Plan): void {
  const named = plan.buffers.find((b) => b.dtype === 'f64') ?? plan.params.find((p) => p.dtype === 'f64')
  const where = named ?? plan.steps.flatMap(f64Inside)[0]
  if (!where) return
  fail({
    code: 'emit/no-f64',
    message: `${named ? `${named.name} is` : `${plan.name} computes in`} f64, which WGSL does not have`,
    ...(where.span ? { span: where.span } : {}),
    expected: 'f32, f16, bf16, i32, u32, i8, u8 or bool',
    hint: named
      ? 'declare it f32, or run the kernel on cpu or cuda'
      : 'cast to f32 and accumulate in f32, or run the kernel on cpu or cuda',
  })
}

/** WGSL allows 127 levels of braces in a function; what compilers count are statements and braces, two a level. */
const MOST_NESTED = 62

function refuseDeep(plan: Plan): void {
  const visit = (body: Body, depth: number, around: Stmt | undefined): void => {
    for (const s of body) {
      const here = s.span ? s : around
      if (depth > MOST_NESTED)
        fail({
          code: 'emit/too-deep',
          message: `${plan.name} has statements in more than ${MOST_NESTED} loops and conditions, which WGSL does not allow`,
          ...(here?.span ? { span: here.span } : {}),
          expected: `at most ${MOST_NESTED} loops and conditions around each other`,
          hint: 'split a loop into fewer loops, end a chain of `else if`, or run the kernel on cpu or cuda',
        })
      for (const b of bodiesOf(s)) visit(b, depth + 1, here)
    }
  }
  for (const step of plan.steps) if (step.kind === 'launch') visit(step.body, 0, undefined)
}

function f64Inside(step: PlanStep): { readonly span?: Span | undefined }[] {
  const found: { readonly span?: Span | undefined }[] = []
  if (step.kind === 'launch')
    walkStmts(step.body, (s) => {
      if (s.kind === 'alloc' && s.buffer.dtype === 'f64') found.push(s)
      for (const e of exprsOf(s)) walkExpr(e, (x) => void (x.dtype === 'f64' && found.push(x)))
    })
  return found
}
