/**
 * Compiles a WGSL module. Calling convention of an entry: buffer arguments are bindings 0, 1, … of group 0, in order (`read` →
 * `var<storage, read>`, `read_write` → `var<storage, read_write>`). Scalars are 4-byte members, in order, of one uniform
 * structure at the binding after the last buffer.
 */
import { type Diagnostic, failAs, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { ArgSpec, CompiledModule, DeviceLimits, Entry, ModuleText } from '../device.ts'
import { checkEntry, checkTarget, type Owned } from '../device-checks.ts'
import { firstLine, type Session } from './session.ts'
import { wordDtype } from './widened-elements.ts'

/** `GPUShaderStage.COMPUTE`, which is not a global outside browsers. */
const COMPUTE = 0x4

export interface GpuEntry {
  readonly spec: Entry
  readonly pipeline: GPUComputePipeline
  readonly layout: GPUBindGroupLayout
  readonly buffers: readonly (ArgSpec & { kind: 'buffer' })[]
  readonly scalars: readonly (ArgSpec & { kind: 'scalar' })[]
  /** Size of the uniform structure, padded to 16 bytes; 0 without scalars. */
  readonly uniformBytes: number
  /** Bind groups by the ids of their buffers. */
  readonly bindGroups: Map<string, BoundGroup>
}

/** A cached bind group; `drop` is called when one of its buffers is freed or the module is released. */
interface BoundGroup {
  readonly group: GPUBindGroup
  drop(): void
}

export class GpuModule implements CompiledModule, Owned {
  readonly owner: Session
  freed = false

  constructor(
    session: Session,
    readonly text: ModuleText,
    readonly entries: ReadonlyMap<string, GpuEntry>,
  ) {
    this.owner = session
  }

  release(): void {
    this.freed = true
    for (const e of this.entries.values()) for (const g of e.bindGroups.values()) g.drop()
  }
}

export async function compileModule(
  session: Session,
  limits: DeviceLimits,
  module: ModuleText,
): Promise<GpuModule> {
  const call = `compile ${module.name}`
  session.checkAlive(call)
  checkTarget(module, 'wgsl')
  for (const entry of module.entries) {
    checkEntry(module, entry, limits)
    for (const arg of entry.args) wordDtype(arg.dtype, `${entry.name}: ${arg.name}`)
    checkUniforms(session, module, entry)
  }
  const { value: shader, failure } = session.scoped(() =>
    session.device.createShaderModule({ label: module.name, code: module.text }),
  )
  const [info, error] = await session.wait(Promise.all([shader.getCompilationInfo(), failure]), call)
  const errors = info.messages.filter((m) => m.type === 'error')
  if (errors.length > 0) throw new SptError(errors.map((m) => locatedError(module, m)))
  if (error) throw new SptError(moduleError(module, error.message))
  const entries = await Promise.all(module.entries.map((e) => makeEntry(session, module, shader, e, call)))
  return new GpuModule(session, module, new Map(entries.map((e) => [e.spec.name, e])))
}

function checkUniforms(session: Session, module: ModuleText, entry: Entry): void {
  const bytes = 4 * entry.args.filter((a) => a.kind === 'scalar').length
  const limit = session.device.limits.maxUniformBufferBindingSize
  if (bytes > limit)
    failAs('device/over-limit', {
      message: `the kernel ${entry.name} of ${module.name} takes ${bytes} bytes of scalars; this device allows ${limit}`,
      expected: `at most ${limit} bytes`,
    })
}

async function makeEntry(
  session: Session,
  module: ModuleText,
  shader: GPUShaderModule,
  spec: Entry,
  call: string,
): Promise<GpuEntry> {
  const { device } = session
  const buffers = spec.args.filter((a) => a.kind === 'buffer')
  const scalars = spec.args.filter((a) => a.kind === 'scalar')
  const uniformBytes = Math.ceil(scalars.length / 4) * 16
  const label = `${module.name}.${spec.name}`
  const bindings: GPUBindGroupLayoutEntry[] = buffers.map((a, binding) => ({
    binding,
    visibility: COMPUTE,
    buffer: { type: a.access === 'read' ? 'read-only-storage' : 'storage' },
  }))
  if (uniformBytes > 0)
    bindings.push({
      binding: buffers.length,
      visibility: COMPUTE,
      // One bind group then serves every value of the scalars.
      buffer: { type: 'uniform', hasDynamicOffset: true, minBindingSize: uniformBytes },
    })
  const { value, failure } = session.scoped(() => {
    const layout = device.createBindGroupLayout({ label, entries: bindings })
    const creation = device.createComputePipelineAsync({
      label,
      layout: device.createPipelineLayout({ label, bindGroupLayouts: [layout] }),
      compute: { module: shader, entryPoint: spec.name },
    })
    // The rejection becomes a value, because it would be unhandled if the device is lost first.
    const pipeline = creation.catch((e: unknown) => (e instanceof Error ? e : new Error(String(e))))
    return { layout, pipeline }
  })
  const [pipeline, error] = await session.wait(Promise.all([value.pipeline, failure]), call)
  if (pipeline instanceof Error) throw new SptError(moduleError(module, pipeline.message, spec.name))
  if (error) throw new SptError(moduleError(module, error.message, spec.name))
  return { spec, pipeline, layout: value.layout, buffers, scalars, uniformBytes, bindGroups: new Map() }
}

const CONTEXT_LINES = 2

const COMPILE_ADVICE = {
  expected: 'WGSL that this device compiles',
  hint: '`spt emit --target wgsl` prints the text',
}

/** Diagnostic of a compilation message, with the lines around its position. */
function locatedError(module: ModuleText, m: GPUCompilationMessage): Diagnostic {
  const lines = module.text.split('\n')
  const excerpt: string[] = []
  const width = String(m.lineNum + CONTEXT_LINES).length
  for (let n = m.lineNum - CONTEXT_LINES; n <= m.lineNum + CONTEXT_LINES; n++) {
    const line = lines[n - 1]
    if (line === undefined || (line === '' && n === lines.length)) continue
    excerpt.push(`${String(n).padStart(width)} | ${line}`)
    if (n === m.lineNum && m.linePos > 0)
      excerpt.push(`${' '.repeat(width)} | ${' '.repeat(m.linePos - 1)}${'^'.repeat(Math.max(m.length, 1))}`)
  }
  return {
    code: 'device/compile',
    message: `WGSL of ${module.name}, line ${m.lineNum}, column ${m.linePos}: ${firstLine(m.message)}`,
    ...COMPILE_ADVICE,
    notes: [excerpt.join('\n')],
  }
}

function moduleError(module: ModuleText, message: string, entry?: string): Diagnostic {
  const subject = entry === undefined ? module.name : `${module.name}, kernel ${entry}`
  return {
    code: 'device/compile',
    message: `WGSL of ${subject}: ${firstLine(message)}`,
    ...COMPILE_ADVICE,
    notes: [message.trim()],
  }
}
