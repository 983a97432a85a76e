/**
 * Gradients: reverse-mode differentiation of a kernel on Stage I. A kernel is equivalent to its statements one after
 * another, each over its whole domain, so its adjoint is the adjoints of the statements in reverse order. The result is
 * an ordinary kernel.
 */
import { checkKinds } from '../analysis/dependence/iterator-kinds.ts'
import { type Write, writesOf } from '../analysis/sparsity/writes.ts'
import { type Diagnostic, failAt, SptError } from '../ast/diagnostics/diagnostic.ts'
import { type Axis, denseAxis, isDenseRoot } from '../ir/coordinates/axis.ts'
import type { Buffer1, Iteration, Kernel1 } from '../ir/coordinates/stage1.ts'
import { readsIn, rewriteBody1, writtenBuffers1 } from '../ir/coordinates/stage1-tree.ts'
import { Names } from '../ir/expressions/bound-names.ts'
import { constant, type Expr, type Load, load, variable } from '../ir/expressions/expr.ts'
import { substitute } from '../ir/expressions/expr-tree.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'
import { getOrAdd } from '../ir/memoize.ts'
import { computeType, isFloat, isHalf } from '../ir/values/dtype.ts'
import type { MonoidDerivative } from '../ir/values/monoid.ts'
import { adjointsOf, dependsOn, type Leaf } from './adjoints.ts'
import { denseDomain } from './dense-domains.ts'
import { axesOfCoordinates, extentOf, isVisitedOnce, rangeConditions } from './elements.ts'
import { iterationsOfSummands, type Summand } from './iterations.ts'
import { namesIn, pruned } from './needed.ts'
import { productOf } from './products.ts'
import { recomputed } from './recomputed.ts'
import { checkOverwrites, checkWriters, rejectPart, rejectReducer, stepWarning } from './rejections.ts'
import { checkRequest, type GradientRequest, type Named, withCopies, withVersionsOf } from './request.ts'
import { withoutConstants } from './terms.ts'
import { withoutRounds } from './unrolled.ts'
import { withVersions } from './versions.ts'
import { winnersOf } from './winners.ts'

/**
 * The kernel that computes the gradients `d_X` of `by` with respect to each X of `wrt`. If `by` is a scalar, all outputs
 * of the kernel remain. Otherwise the gradient `d_by` is an input: a vector-Jacobian product.
 * W stands for `W_1`, `W_2`, … if copies of `repeat` declare it.
 * @throws SptError `derive/…`
 */
export function gradient(kernel: Kernel1, request: GradientRequest): Kernel1 {
  const { stopping = [], recomputing = [], rounding = [], span } = request
  const wrt = withCopies(kernel, request.wrt)
  checkRequest(kernel, { ...request, wrt })
  const { kernel: unrolled, copies } = withoutRounds(kernel, span)
  const names = new Names(namesIn(unrolled))
  const earlier = new Map<string, string[]>()
  const versioned = withVersions(unrolled, names, earlier)
  const all = (x: readonly Named[]) => withVersionsOf(withVersionsOf(x, copies), earlier)
  const [stops, again, rounded] = [stopping, recomputing, rounding].map(all)
  const given = { ...request, wrt, stopping: stops!, recomputing: again!, rounding: rounded! }
  return new Derivation(versioned, names, given).run()
}

class Derivation {
  readonly #names: Names
  readonly #kernel: Kernel1
  readonly #buffers: ReadonlyMap<string, Buffer1>
  readonly #axes: Map<string, Axis>
  /** Tensors and scalars that depend on those of `wrt`. */
  readonly #varied: ReadonlySet<string>
  /** Adjoints by the names of their tensors. */
  readonly #adjoints = new Map<string, Buffer1>()
  /** Gradients at all coordinates of sparse tensors, by the tensors. */
  readonly #scattered = new Map<string, Buffer1>()
  /** Other temporaries of the backward pass. */
  readonly #collected: Buffer1[] = []
  readonly #backward: Iteration[] = []
  /** By their messages. */
  readonly #warnings = new Map<string, Diagnostic>()

  constructor(
    kernel: Kernel1,
    names: Names,
    private readonly request: GradientRequest,
  ) {
    this.#names = names
    this.#kernel = kernel
    this.#buffers = new Map(this.#kernel.buffers.map((b) => [b.name, b]))
    this.#axes = new Map(this.#kernel.axes.map((a) => [a.name, a]))
    this.#varied = this.#variedFrom()
  }

  get #isLoss(): boolean {
    return this.#buffers.get(this.request.by.name)!.axes.length === 0
  }

  run(): Kernel1 {
    const { by, wrt, name, span } = this.request
    if (!this.#isLoss) this.#adjoints.set(by.name, { ...this.#adjointOf(by.name), role: 'in' })
    for (const w of writesOf(this.#kernel).toReversed()) this.#reverse(w)
    for (const of of [...this.#scattered.keys()]) this.#gather(of)
    this.#copySeed()
    for (const x of wrt)
      if (!this.#adjoints.has(x.name))
        failAt('derive/independent', x.span ?? span, {
          message: `${by.name} does not depend on ${x.name}`,
          expected: `a tensor from which ${by.name} is computed`,
          notes: [...this.#warnings.keys()],
        })
    const { recomputing = [] } = this.request
    const again = recomputed(this.#kernel, this.#backward, recomputing, this.#names)
    const derived = pruned(
      {
        ...this.#kernel,
        name,
        axes: [...this.#axes.values()],
        buffers: [...this.#kernel.buffers, ...again.buffers, ...this.#collected, ...this.#ordered()],
        reformats: [],
        warnings: [...this.#warnings.values()],
        span: span ?? this.#kernel.span,
      },
      again.body,
      this.#isLoss,
    )
    const problems = checkKinds(derived)
    if (problems.length > 0) throw new SptError([...problems])
    return derived
  }

  /** If statements read elements of the result, their adjoints are added to a copy of the given gradient. */
  #copySeed(): void {
    const { by } = this.request
    const seed = this.#adjoints.get(by.name)
    if (seed?.role !== 'in' || !writtenBuffers1(this.#backward).has(seed.name)) return
    const sum: Buffer1 = { ...seed, name: this.#names.fresh(`${seed.name}_sum`), role: 'local' }
    const backward = rewriteBody1(this.#backward.splice(0), (e) =>
      e.kind === 'load' && e.buffer === seed.name ? load(sum.name, e.index, e.dtype, e.span) : undefined,
    )
    this.#adjoints.set(by.name, sum)
    this.#scattered.set(by.name, seed)
    this.#gather(by.name)
    this.#backward.push(...(backward as readonly Iteration[]))
  }

  /** Adjoints in the order of the tensors, those of `wrt` in the order of the request. */
  #ordered(): readonly Buffer1[] {
    const requested = this.request.wrt.map((x) => this.#adjoints.get(x.name)!)
    return [...[...this.#adjoints.values()].filter((b) => !requested.includes(b)).toReversed(), ...requested]
  }

  #variedFrom(): ReadonlySet<string> {
    const out = new Set(this.request.wrt.map((x) => x.name))
    const stopping = new Set(this.request.stopping?.map((x) => x.name))
    const isVaried = (leaf: Leaf): boolean => out.has(leafName(leaf))
    for (const w of writesOf(this.#kernel)) {
      const depends = dependsOn(isVaried)
      for (const [k, t] of w.targets.entries())
        if (isFloat(t.dtype) && !stopping.has(t.buffer) && operandsOf(w, k).some(depends)) out.add(t.buffer)
    }
    return out
  }

  /** The new tensor of a gradient. Sums of narrow types accumulate in f32. */
  #adjointOf(of: string): Buffer1 {
    const b = this.#buffers.get(of)
    const given = b?.dtype ?? this.#kernel.params.find((p) => p.name === of)!.dtype
    const { wrt, by, rounding = [] } = this.request
    const isRequested = wrt.some((x) => x.name === of)
    const isRounded = isRequested || of === by.name || rounding.some((x) => x.name === of)
    const dtype = isRounded ? given : computeType(given)
    return {
      name: this.#names.fresh(`d_${of}`),
      dtype,
      axes: this.#isDense(of) ? this.#allOf(b!.axes) : (b?.axes ?? []),
      role: isRequested ? 'out' : 'local',
      fill: 0,
      accumulate: isHalf(dtype) ? computeType(dtype) : dtype,
      span: b?.span,
    }
  }

  #isDense(of: string): boolean {
    return this.request.wrt.some((x) => x.name === of && x.dense)
  }

  #adjoint(of: string): Buffer1 {
    const made = this.#adjoints.get(of) ?? this.#adjointOf(of)
    this.#adjoints.set(of, made)
    return made
  }

  /** The adjoint of an element that a statement writes; null if the result does not depend on the element. */
  #adjointAt(t: Load): Expr | null {
    if (this.#isLoss && t.buffer === this.request.by.name) return constant(1, computeType(t.dtype))
    const d = this.#adjoints.get(t.buffer)
    if (!d || !this.#varied.has(t.buffer)) return null
    return load(d.name, t.index, d.dtype)
  }

  /** The gradient of a sparse tensor at all coordinates, because a statement reads elements that may be absent. */
  #dense(of: string, adjoint: Buffer1): Buffer1 {
    return getOrAdd(this.#scattered, of, () => {
      const name = this.#names.fresh(`${adjoint.name}_all`)
      return { ...adjoint, name, axes: this.#allOf(adjoint.axes), role: 'local' }
    })
  }

  /** Dense axes of the extents of axes: new ones in place of those that store coordinates. */
  #allOf(axes: readonly string[]): readonly string[] {
    return axes.map((name) => {
      const axis = this.#axes.get(name)!
      if (isDenseRoot(axis)) return name
      const all = denseAxis(this.#names.fresh(`${name}_all`), extentOf(axis))
      this.#axes.set(all.name, all)
      return all.name
    })
  }

  /** Adds what was collected at all coordinates to the gradient, before it is used. */
  #gather(of: string): void {
    const from = this.#scattered.get(of)
    const adjoint = this.#adjoints.get(of)
    if (!from || !adjoint) return
    const index = adjoint.axes.map((a) => variable(a))
    const [target, value] = [adjoint, from].map((b) => load(b.name, index, b.dtype)) as [Load, Load]
    const iters = adjoint.axes.map((axis) => ({ name: axis, axis, kind: 'S' as const }))
    const summand: Summand = { buffer: adjoint, target, value, iters, conditions: [] }
    this.#backward.push(...iterationsOfSummands([summand], from.name, this.#axes, this.#names))
    this.#collected.push(from)
    this.#scattered.delete(of)
  }

  /** Adjoints of the operands of a reduction by the rule of its monoid. */
  #byRule(w: Write, { operand, result, adjoint, values }: MonoidDerivative) {
    const at = new Map<string, Expr>()
    for (const [k, t] of w.targets.entries()) {
      at.set(operand[k]!.name, w.values[k]!)
      at.set(result[k]!.name, t)
      at.set(adjoint[k]!.name, this.#adjointAt(t) ?? constant(0, t.dtype))
    }
    return w.values.flatMap((value, k) =>
      isFloat(value.dtype) ? [{ value, adjoint: withoutConstants(substitute(values[k]!, at)) }] : [],
    )
  }

  #reverse(w: Write): void {
    const seeds = w.targets.flatMap((t, k) => {
      const adjoint = this.#adjointAt(t)
      return adjoint ? [{ value: w.values[k]!, adjoint }] : []
    })
    if (seeds.length === 0) return
    for (const t of w.targets) this.#gather(t.buffer)
    const rule = w.stmt.kind === 'reduce' ? w.stmt.reducer.derivative : undefined
    if (rule) checkWriters(w, this.#kernel, false)
    const isSum = w.stmt.kind === 'assign' || rule || w.stmt.reducer.name === '+'
    const operands = isSum
      ? undefined
      : (productOf(w, seeds[0]!.adjoint, this.#buffers, this.#names) ??
        winnersOf(w, this.#axes, this.#buffers, this.#names) ??
        rejectReducer(w.stmt))
    if (operands) {
      checkWriters(w, this.#kernel, true)
      this.#collected.push(...operands.buffers)
      this.#backward.push(...operands.iterations)
    }
    const isActive = (leaf: Leaf): boolean => this.#varied.has(leafName(leaf))
    const isInside = (l: Load): boolean => w.inside.has(keyOf(l))
    const terms = adjointsOf(rule ? this.#byRule(w, rule) : (operands?.seeds ?? seeds), {
      isActive,
      isInside,
      stopAt: (e) => {
        const warning = stepWarning(e, w.stmt)
        this.#warnings.set(warning.message, warning)
      },
      reject: (e) => rejectPart(e, w.stmt),
    })
    const coordinates = axesOfCoordinates(w, this.#axes)
    const iters = w.iterations.flatMap((it) => it.iters)
    const summands = terms.map(({ leaf, guards, value }): Summand => {
      const conditions = [...w.conditions, ...(operands?.conditions ?? []), ...guards]
      const adjoint = this.#adjoint(leafName(leaf))
      if (leaf.kind === 'var')
        return { buffer: adjoint, target: load(adjoint.name, [], adjoint.dtype), value, iters, conditions }
      const dense = { leaf, of: this.#buffers.get(leaf.buffer)!, axes: adjoint.axes }
      const domain = this.#isDense(leaf.buffer)
        ? denseDomain(w, dense, value, this.#axes, this.#buffers)
        : { iters, coordinates: new Map<string, Expr>() }
      const isStored = isVisitedOnce(leaf, adjoint, coordinates, this.#axes)
      const buffer = isStored ? adjoint : this.#dense(leaf.buffer, adjoint)
      const ranges = rangeConditions(leaf, buffer, coordinates, conditions, this.#axes)
      const moved = (e: Expr): Expr => substitute(e, domain.coordinates)
      return {
        buffer,
        target: load(buffer.name, leaf.index.map(moved), buffer.dtype),
        value: moved(value),
        iters: domain.iters,
        conditions: [...conditions, ...ranges].map(moved),
      }
    })
    const made = iterationsOfSummands(summands, w.iterations.at(-1)!.name, this.#axes, this.#names)
    const read = new Set(readsIn([...(operands?.iterations ?? []), ...made]).map((l) => l.buffer))
    checkOverwrites(w, this.#kernel, (l) => isActive(l) || read.has(l.buffer))
    this.#backward.push(...made)
  }
}

/** The operands on which component k of a statement's targets may depend. */
const operandsOf = ({ stmt, values }: Write, k: number): readonly Expr[] =>
  stmt.kind === 'reduce' && stmt.reducer.derivative ? values : [values[k]!]

const leafName = (leaf: Leaf): string => (leaf.kind === 'load' ? leaf.buffer : leaf.name)
