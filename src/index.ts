/**
 * sparsetile in any JavaScript host: programs from text, the cpu device, the browser's GPU. The compiler is loaded with the first program.
 */

import type { Built } from './api/built/built.ts'
import { expectArgument, expectOptions, isRecord } from './api/inputs/argument-checks.ts'
import {
  checkLoadOptions,
  isPath,
  type LoadOptions,
  type TextOrUrl,
  textOf,
} from './api/programs/load-options.ts'
import type { SptProgram } from './api/programs/program.ts'
import { type Diagnostic, failWith, type Source, useRenderer } from './ast/diagnostics/diagnostic.ts'
import { type RenderOptions, render as renderAll } from './ast/diagnostics/render.ts'
import { expectFields } from './ast/diagnostics/value-kinds.ts'
import { inPackage, PACKAGE, type ReadText, refuseImport, rooted } from './ast/imports/resolve-path.ts'
import type { WorkOptions } from './ast/work.ts'
import type { Plan, PlanFamily } from './plan/schema.ts'
import type { Device } from './runtime/device.ts'
import {
  isShared,
  type SharedGpuOptions,
  WEBGPU_OPTIONS,
  type WebGpuOptions,
} from './runtime/webgpu/options.ts'

export type { Binding } from './api/built/binding.ts'
export type { BuildOptions } from './api/built/build.ts'
export type { Built } from './api/built/built.ts'
export type { SelectionContext } from './api/dispatch/device-facts.ts'
export type { Selection } from './api/dispatch/dispatch-conditions.ts'
export type { RunSelection } from './api/dispatch/last-run.ts'
export type { ConvertedTensor } from './api/inputs/converted-tensor.ts'
export type { BindOptions, Inputs, SelectionOptions } from './api/inputs/flat-inputs.ts'
export type { FormatData } from './api/inputs/format-instances.ts'
export type { SptFormat } from './api/inputs/format-values.ts'
export {
  type Bindable,
  coords,
  dense,
  type Integers,
  packIndices,
  stored,
  unpackIndices,
} from './api/inputs/tensors.ts'
export type { Kernel, TraceStep, Variant } from './api/kernels/kernel.ts'
export type { Part } from './api/kernels/nests.ts'
export type { LoadOptions } from './api/programs/load-options.ts'
export type { SptProgram } from './api/programs/program.ts'
export { type Diagnostic, InternalError, type Span, SptError } from './ast/diagnostics/diagnostic.ts'
export type { ModuleText } from './backends/targets/index.ts'
export type { Dtype } from './ir/values/dtype.ts'
export type { Plan } from './plan/schema.ts'
export type { TensorFormat } from './run/bind/index.ts'
export type { ResidentDense } from './run/execution/external-memory.ts'
export type { KernelGraph } from './run/execution/launch-commands.ts'
export type { ExplainOptions, Explanation } from './run/explain/index.ts'
export type { UnorderedSum } from './run/verify/unordered-sums.ts'
export type { Verification } from './run/verify/verify.ts'
export type { Device, DeviceLimits } from './runtime/device.ts'
export type { Measurement, MeasureOptions } from './runtime/measure.ts'
export { scheduleText, typescriptText } from './search/text.ts'
export type { CoordTensor, DenseTensor, StoredTensor, Tensor, ValueArray } from './storage/tensor.ts'
export type * as types from './types.ts'

useRenderer(renderAll)

/**
 * Loads a program from its text or a path. `read` returns the text of a path; by default, files of the package (`sparsetile/…`) are
 * loaded as modules, and others by `fetch`. A text without `read` imports only files of the package.
 * @throws SptError with every error found; `render` prints it
 */
export async function load(given: TextOrUrl, options: LoadOptions = {}): Promise<SptProgram> {
  checkLoadOptions(options, {})
  const { read, root } = options
  const textOrPath = textOf(given)
  const ofText: ReadText = async (path) => (inPackage(path) ? packageText(path) : refuseImport(path))
  const imports: ReadText = read ?? (isPath(textOrPath) ? fetchText : ofText)
  const { loadWith } = await import('./api/programs/program.ts')
  return loadWith(textOrPath, options, {
    files: read ?? fetchText,
    imports: root === undefined ? imports : rooted(root, imports),
  })
}

/**
 * Loads a plan or a family of plans for a device: the JSON of `spt emit --target plan` or of `fn.plan`, parsed. Needs no compiler,
 * and therefore rejects calls that need the kernel, such as `verify` and `explain` (`plan/no-kernel`).
 * ```ts
 * const fn = await loadPlan(JSON.parse(text), device)
 * const { C } = await fn({ A, B })
 * ```
 * @param options - A signal, and a function that receives the progress
 * Throws SptError `plan/…` if the plan is malformed, was changed, or is for another device; `device/compile`.
 */
export async function loadPlan(
  plan: Plan | PlanFamily,
  device: Device,
  options: WorkOptions = {},
): Promise<Built> {
  const loading = await import('./api/plans/loaded-plan.ts')
  return loading.loadPlan(plan, device, options)
}

/** Diagnostics as the command line shows them, with the lines that they are about. */
export function render(
  diagnostics: readonly Diagnostic[],
  sources: readonly Source[] | ReadonlyMap<string, Source>,
  options: RenderOptions = {},
): string {
  expectOptions('render', options, ['color'])
  const isText = (x: unknown, ...names: string[]) =>
    isRecord(x) && names.every((n) => typeof x[n] === 'string')
  const areDiagnostics = Array.isArray(diagnostics) && diagnostics.every((d) => isText(d, 'code', 'message'))
  expectArgument(areDiagnostics, 'what is rendered', diagnostics, 'the diagnostics of an error')
  const list: readonly unknown[] = [sources instanceof Map ? [...sources.values()] : sources].flat()
  const areSources = list.every((s) => isText(s, 'name', 'text'))
  expectArgument(areSources, 'the sources', sources, 'texts with their names, as the sources of a program')
  return renderAll(diagnostics, sources, options)
}

/** Reads a file of the package, `sparsetile/kernels/formats.spt`, from the modules of the package. @throws SptError `import/unreadable` */
async function packageText(path: string): Promise<string> {
  const { PROGRAMS } = await import('./ast/imports/package-modules.ts')
  const program = PROGRAMS[path.slice(PACKAGE.length)]
  if (program) return (await program()).default
  return failWith('import/unreadable', `\`${path}\` is not a program of the package`, {
    hint: 'see the kernels/ folder of the package for the paths; load(text, { read }) reads other files',
  })
}

async function fetchText(path: string): Promise<string> {
  if (inPackage(path)) return packageText(path)
  const response = await fetch(path)
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`)
  return response.text()
}

export const devices = {
  cpu: async (options: object = {}): Promise<Device> => {
    expectOptions('devices.cpu', options, [])
    const { createCpuDevice } = await import('./runtime/cpu/device.ts')
    return createCpuDevice()
  },
  /** The host's GPU, through `navigator.gpu`, or your own `GPUDevice`. @throws SptError `device/absent`, `device/lost` */
  webgpu: async (options: WebGpuOptions | SharedGpuOptions = {}): Promise<Device> => {
    const { createWebGpuDevice, shareGpuDevice } = await import('./runtime/webgpu/open.ts')
    if (isShared(options)) {
      expectOptions('devices.webgpu', options, ['device'])
      return shareGpuDevice(options.device)
    }
    expectFields('devices.webgpu', options, WEBGPU_OPTIONS)
    const { gpu } = (globalThis as { navigator?: { gpu?: GPU } }).navigator ?? {}
    if (!gpu)
      return failWith('device/absent', 'this host has no WebGPU (navigator.gpu)', {
        expected: 'a browser with WebGPU',
        hint: 'use a current browser over https or on localhost, or devices.cpu()',
      })
    return createWebGpuDevice(gpu, options)
  },
}
