/**
 * Default schedule on software adapters (SwiftShader, llvmpipe, WARP). Compiling tiled and unrolled loops takes seconds there, which small
 * data never repay. So `parallel()` runs instead, up to an amount of work (docs/how-to/webgpu-limits.md).
 */
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { type Axis, isFused } from '../../ir/coordinates/axis.ts'
import type { Kernel1, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { packBuffers } from '../../lower/launches/buffer-packing.ts'
import { allAxesOf, isStructured } from '../../run/bind/bind-plan.ts'
import { axesOfBinding } from '../../run/bind/binding-names.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { checkLimits } from '../../run/compile/launch-limits.ts'
import type { Device } from '../../runtime/device.ts'
import { storedElements, type Tensor } from '../../storage/tensor.ts'

/**
 * Number of iterations from which tuned loops pay off. SwiftShader on two cores takes 20 to 40 ns per iteration under `parallel()`, so
 * about 2 s per run, and 1 to 4 s to compile a tuned schedule.
 */
export const PLAIN_ITERATIONS = 2 ** 26

/** Name of the plain schedule in reports. */
export const PLAIN = 'parallel()'

const isSoftware = (on: unknown): on is Device =>
  typeof on === 'object' && on !== null && (on as Partial<Device>).isSoftware === true

/**
 * Why a kernel with a default schedule runs as `parallel()` on a device, as text; `null` if it does not. `base`: the kernel without steps
 * on loops. `tensors`: by declared name.
 */
export function plainReason(
  on: unknown,
  base: { readonly compilation: Compilation; parallel(): { readonly compilation: Compilation } },
  sizes: ReadonlyMap<string, number>,
  tensors: Readonly<Record<string, Tensor>>,
): string | null {
  if (!isSoftware(on)) return null
  const { source } = base.compilation
  const n = resultOrError(() => iterationsIn(source, sizes, tensors))
  if (n instanceof SptError || !(n <= PLAIN_ITERATIONS)) return null
  // The plain kernel may exceed the device's limits.
  const fits = resultOrError(() => checkPlain(base.parallel().compilation, on))
  return fits instanceof SptError
    ? null
    : `on a software adapter, compiling tuned loops takes longer than running ${number(n)} iterations`
}

const number = (n: number): string => (n < 1e5 ? `${n}` : `${(n / 1e6).toPrecision(2)} million`)

function checkPlain(plain: Compilation, device: Device): void {
  checkLimits(device, packBuffers(plain.planOn(device), device.limits.maxBuffersPerLaunch))
}

/** Upper bound on executions of innermost bodies: axes of a bound sparse tensor count by its elements, other axes by their extents. */
export function iterationsIn(
  source: Kernel1,
  sizes: ReadonlyMap<string, number>,
  tensors: Readonly<Record<string, Tensor>>,
): number {
  const axes = allAxesOf(source)
  const extent = (a: Axis | undefined): number => {
    if (a && 'extent' in a)
      return [...freeVars(a.extent)].every((v) => sizes.has(v)) ? evaluate(a.extent, sizes) : Number.NaN
    if (isFused(a)) return a.members.reduce((n, m) => n * extent(axes.get(m)), 1)
    return a && 'base' in a ? extent(axes.get(a.base)) : Number.NaN
  }
  const sparse = Object.entries(tensors).flatMap(([name, t]) => {
    const over = axesOfBinding(source, name)
    return t.kind !== 'dense' && over.some((a) => isStructured(axes, a))
      ? [{ over, stored: storedElements(t) }]
      : []
  })
  const inside = (body: readonly Stmt1[], around: number): number =>
    body.reduce((sum, s) => {
      if (s.kind === 'if') return sum + inside([...s.then, ...s.else], around)
      if (s.kind !== 'iterate') return sum
      const open = new Set(s.iters.map((i) => i.axis))
      let n = around
      for (const { over, stored } of sparse) {
        const own = over.filter((a) => open.has(a))
        const all = own.reduce((x, a) => x * extent(axes.get(a)), 1)
        if (!own.some((a) => isStructured(axes, a)) || !(stored < all)) continue
        n *= stored
        for (const a of own) open.delete(a)
      }
      for (const a of open) n *= extent(axes.get(a))
      return sum + n + inside(s.body, n)
    }, 0)
  return inside(source.body, 1)
}
