/**
 * The simplest possible meaning of Stage I, to judge the reference by: tensors are maps from coordinates to
 * values, every iterator tries every coordinate and asks whether it is stored, expressions are walked anew each
 * time, integers are BigInts. Axes are unique; small sizes only.
 */
import { type Axis, isStored, parentOf } from '../../src/ir/coordinates/axis.ts'
import type { Kernel1, Stmt1 } from '../../src/ir/coordinates/stage1.ts'
import type { Expr, Load } from '../../src/ir/expressions/expr.ts'
import { isFloat } from '../../src/ir/values/dtype.ts'
import type { RefInputs } from '../../src/reference/index.ts'

type Tensor = Map<string, number>
const key = (coords: readonly number[]): string => coords.join()

interface Env {
  readonly values: ReadonlyMap<string, number>
  /** Coordinates from the root, of axes that are iterated. */
  readonly paths: ReadonlyMap<string, readonly number[]>
}

export function brute(kernel: Kernel1, inputs: RefInputs): Record<string, Tensor> {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
  const tensors = new Map<string, Tensor>()
  const params: Env = { values: new Map(Object.entries(inputs.params)), paths: new Map() }
  const number = (e: Expr): number => evaluate(e, params)

  const chain = (name: string): string[] => {
    const parent = parentOf(axes.get(name)!)
    return parent === null ? [name] : [...chain(parent), name]
  }
  /** Whether the node at this path from the root exists. */
  const exists = (name: string, path: readonly number[]): boolean => {
    const a = axes.get(name) as Extract<Axis, { extent: Expr }>
    const c = path[path.length - 1]!
    if (c < 0 || c >= number(a.extent)) return false
    const names = chain(name)
    if (names.length > 1 && !exists(names[names.length - 2]!, path.slice(0, -1))) return false
    if (a.kind === 'dense_fixed') return true
    return kernel.buffers.some((b) => {
      const given = inputs.buffers[b.name]
      if (!given || !('coords' in given) || !b.axes.includes(name)) return false
      const columns = names.map((n) => given.coords[b.axes.indexOf(n)]!)
      return Array.from(columns[0]!).some((_, e) =>
        columns.every((col, k) =>
          k + 1 === names.length && a.kind === 'dense_variable' ? col[e]! >= c : col[e] === path[k],
        ),
      )
    })
  }
  const stored = (buffer: string, coords: readonly number[]): boolean => {
    const b = buffers.get(buffer)!
    return b.axes.every((n) =>
      exists(
        n,
        chain(n).map((m) => coords[b.axes.indexOf(m)]!),
      ),
    )
  }
  const product = (names: readonly string[]): number[][] =>
    names.reduce<number[][]>(
      (all, n) => {
        const extent = number((axes.get(n) as Extract<Axis, { extent: Expr }>).extent)
        return all.flatMap((p) => Array.from({ length: extent }, (_, c) => [...p, c]))
      },
      [[]],
    )

  for (const b of kernel.buffers) {
    const t: Tensor = new Map()
    const given = inputs.buffers[b.name]
    for (const [at, coords] of product(b.axes).entries()) {
      if (!stored(b.name, coords)) continue
      t.set(key(coords), given && !('coords' in given) ? given[at]! : b.fill)
    }
    if (given && 'coords' in given)
      for (let e = 0; e < (given.values?.length ?? 0); e++)
        t.set(key(given.coords.map((c) => c[e]!)), given.values![e]!)
    tensors.set(b.name, t)
  }

  function evaluate(e: Expr, env: Env): number {
    const go = (x: Expr): number => evaluate(x, env)
    switch (e.kind) {
      case 'const':
        return e.value
      case 'var':
        return env.values.get(e.name)!
      case 'unary':
        return e.op === 'not' ? Number(go(e.x) === 0) : negated(-go(e.x), e)
      case 'select':
        return go(e.cond) !== 0 ? go(e.then) : go(e.else)
      case 'cast':
        return go(e.x)
      case 'load':
        return tensors.get(e.buffer)!.get(key(e.index.map(go))) ?? buffers.get(e.buffer)!.fill
      case 'binary':
        return isFloat(e.a.dtype) ? float(e.op, go(e.a), go(e.b)) : integer(e, go(e.a), go(e.b))
      default:
        throw new Error(`brute force knows no ${e.kind}`)
    }
  }
  const negated = (x: number, e: Expr): number =>
    isFloat(e.dtype) ? x : Number(BigInt.asIntN(32, BigInt(x)))

  const address = (t: Load, env: Env): string => key(t.index.map((e) => evaluate(e, env)))

  function run(body: readonly Stmt1[], outer: Env): void {
    let env = outer
    for (const s of body)
      switch (s.kind) {
        case 'let':
          env = { ...env, values: new Map(env.values).set(s.name, evaluate(s.value, env)) }
          break
        case 'if':
          run(evaluate(s.cond, env) !== 0 ? s.then : s.else, env)
          break
        case 'assign': {
          const now = s.values.map((v) => evaluate(v, env))
          s.targets.forEach((t, k) => {
            tensors.get(t.buffer)!.set(address(t, env), now[k]!)
          })
          break
        }
        case 'reduce': {
          const values = new Map<string, number>()
          s.reducer.right.forEach((v, k) => {
            values.set(v.name, evaluate(s.values[k]!, env))
          })
          s.reducer.left.forEach((v, k) => {
            values.set(v.name, evaluate(s.targets[k]!, env))
          })
          const next = s.reducer.result.map((r) => evaluate(r, { values, paths: new Map() }))
          s.targets.forEach((t, k) => {
            tensors.get(t.buffer)!.set(address(t, env), next[k]!)
          })
          break
        }
        case 'iterate':
          iterate(
            s.iters.flatMap(({ name, axis }) => {
              const a = axes.get(axis)!
              return a.kind === 'fused' ? a.members.map((m) => [m, m] as const) : [[name, axis] as const]
            }),
            env,
            (inner) => {
              if (s.where.every((w) => evaluate(w, inner) !== 0)) run(s.body, inner)
            },
          )
      }
  }

  function iterate(iters: readonly (readonly [string, string])[], env: Env, then: (env: Env) => void): void {
    const [first, ...rest] = iters
    if (!first) {
      then(env)
      return
    }
    const [name, axisName] = first
    const a = axes.get(axisName)!
    const enter = (c: number, path: readonly number[], of: string): void =>
      iterate(
        rest,
        {
          values: new Map(env.values).set(name, c),
          paths: new Map(env.paths).set(axisName, path).set(of, path),
        },
        then,
      )
    if (a.kind === 'gathered') {
      const list = tensors.get(a.buffer)!
      const { extent } = axes.get(a.base) as Extract<Axis, { extent: Expr }>
      for (const c of list.values()) if (c >= 0 && c < number(extent)) enter(c, [c], axisName)
      return
    }
    const base = a.kind === 'attached' ? axes.get(a.base)! : a
    if (!isStored(base)) throw new Error('not a stored axis')
    const parent = parentOf(base)
    const above =
      a.kind === 'attached'
        ? env.paths.get(a.parent)!.slice(-1)
        : parent === null
          ? []
          : env.paths.get(parent)!
    for (let c = 0; c < number(base.extent); c++)
      if (exists(base.name, [...above, c])) enter(c, [...above, c], base.name)
  }

  // Outputs start as the language says.
  const first = (body: readonly Stmt1[], name: string): number | undefined => {
    for (const s of body) {
      if (s.kind === 'let') continue
      const nested = s.kind === 'iterate' ? s.body : s.kind === 'if' ? [...s.then, ...s.else] : null
      if (nested) {
        const found = first(nested, name)
        if (found !== undefined) return found
      } else if (s.kind === 'assign' || s.kind === 'reduce') {
        const k = s.targets.findIndex((t) => t.buffer === name)
        if (k >= 0)
          return s.kind === 'reduce' ? evaluate(s.reducer.identity[k]!, params) : buffers.get(name)!.fill
      }
    }
    return undefined
  }
  for (const b of kernel.buffers)
    if (b.role === 'out' || b.role === 'local') {
      const start = first(kernel.body, b.name) ?? b.fill
      const t = tensors.get(b.name)!
      for (const k of t.keys()) t.set(k, start)
    }
  run(kernel.body, params)
  return Object.fromEntries(tensors)
}

function float(op: string, a: number, b: number): number {
  switch (op) {
    case 'add':
      return a + b
    case 'sub':
      return a - b
    case 'mul':
      return a * b
    case 'min':
      return Math.min(a, b)
    case 'max':
      return Math.max(a, b)
    default:
      return compare(op, a, b)
  }
}

function integer(e: Extract<Expr, { kind: 'binary' }>, x: number, y: number): number {
  const a = BigInt(x)
  const b = BigInt(y)
  const floor = (): bigint => {
    const q = a / b
    return a % b !== 0n && a < 0n !== b < 0n ? q - 1n : q
  }
  switch (e.op) {
    case 'add':
      return Number(BigInt.asIntN(32, a + b))
    case 'sub':
      return Number(BigInt.asIntN(32, a - b))
    case 'mul':
      return Number(BigInt.asIntN(32, a * b))
    case 'div':
      return b === 0n ? 0 : Number(BigInt.asIntN(32, floor()))
    case 'mod':
      return b === 0n ? 0 : Number(a - b * floor())
    case 'min':
      return Math.min(x, y)
    case 'max':
      return Math.max(x, y)
    default:
      return compare(e.op, x, y)
  }
}

function compare(op: string, a: number, b: number): number {
  const table: Record<string, boolean> = {
    lt: a < b,
    le: a <= b,
    gt: a > b,
    ge: a >= b,
    eq: a === b,
    ne: a !== b,
    and: a !== 0 && b !== 0,
    or: a !== 0 || b !== 0,
  }
  return Number(table[op])
}
