/** Options shared by several commands. */
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { Call, OptionSpec } from './command.ts'
import { optionTable } from './option-table.ts'

export const KERNEL: OptionSpec = {
  flags: '--kernel <K>',
  about: 'Name of the kernel (default: the only kernel, or the kernel named like the file)',
}

const schedule = (about: string): OptionSpec => ({ flags: '--schedule <S>', about })

/** Options of commands that run a kernel on a device. */
export const SCHEDULE = schedule(
  'A schedule: gpu, or gpu(8, 32) with arguments (default: auto, cpu on cpu, or gpu on other devices, if declared and legal; otherwise that of the auto-scheduler)',
)

export const DEVICE: OptionSpec = { flags: '--device <D>', about: 'cpu, webgpu or cuda (default: cpu)' }

export const SIZE: OptionSpec = { flags: '--size <NAME=N>', about: 'A size or a scalar', repeats: true }

export const BIND: OptionSpec = {
  flags: '--bind <NAME=PATH>',
  about: 'Data of a buffer, structure of an axis (offsets for a ragged axis), or a list or set of a format',
  repeats: true,
  file: 'read',
}

export const SEED: OptionSpec = {
  flags: '--seed <N>',
  about: 'Seed of the random data for unbound tensors (default: 0)',
}

const PROPERTIES = {
  capability: {
    flags: '--capability <C>',
    about: 'CUDA compute capability for automatic selection (9.0)',
    syntax: /^\d+\.\d$/,
    noun: 'a compute capability',
    expected: 'major and minor: --capability 9.0',
    devices: 'CUDA devices',
  },
  processors: {
    flags: '--processors <N>',
    about: 'Number of SMs for automatic selection',
    syntax: /^[1-9]\d{0,8}$/,
    noun: 'a number of multiprocessors',
    expected: 'an integer that is positive: --processors 132',
    devices: 'GPUs',
  },
  feature: {
    flags: '--feature <F>',
    about: 'Device feature for automatic selection (subgroups)',
    repeats: true,
    syntax: /^\s*[A-Za-z_]\w*\s*(\([^()]*\)\s*)?$/,
    noun: 'a feature',
    expected: "a name, or a name with arguments: --feature 'subgroup_size(32)'",
    devices: 'GPUs',
  },
}

/** Options of commands that may select a schedule for a device without opening it. */
export const DEVICE_PROPERTIES: readonly OptionSpec[] = Object.values(PROPERTIES)

/** The values of a device property, checked. @throws UsageError */
export function deviceProperty(
  call: Call,
  kind: DeviceKind,
  name: keyof typeof PROPERTIES,
): readonly string[] {
  const { syntax, noun, expected, devices } = PROPERTIES[name]
  const values = call.many(name)
  const invalid = values.find((text) => !syntax.test(text))
  if (invalid !== undefined) call.reject(`--${name} ${invalid} is not ${noun}`, { expected })
  if (values.length > 0 && (kind === 'cpu' || (name === 'capability' && kind !== 'cuda')))
    call.reject(`--${name} is of ${devices}, and this is for ${kind}`, {
      hint: `omit --${name}, or use ${call.command === 'emit' ? '--target' : '--device'} cuda`,
    })
  return values
}

export const SELECTION_OPTIONS = ['bind', 'size', ...Object.keys(PROPERTIES)]

/**
 * Rejects inputs of automatic selection, for a fixed schedule. `usesSizes`: the command also needs `--bind`, and `--size`
 * without statistics.
 * @throws UsageError
 */
export function checkSelectionInputs(
  call: Call,
  { name, dispatches: [choice] }: Pick<Kernel, 'name' | 'dispatches'>,
  usesSizes: boolean,
): void {
  const isUsed = (o: string, text: string): boolean =>
    usesSizes && (o === 'bind' || (o === 'size' && !text.slice(0, text.lastIndexOf('=')).includes('(')))
  const [unused] = SELECTION_OPTIONS.flatMap((o) =>
    call.many(o).flatMap((text) => (isUsed(o, text) ? [] : [`--${o} ${text}`])),
  )
  if (unused === undefined) return
  call.reject(
    `${unused} has no effect: the schedule of kernel ${name} does not depend on data or the device`,
    {
      expected: 'a schedule that is chosen by data, sizes, statistics or the device',
      hint: choice === undefined ? `omit ${unused}` : `omit ${unused}, or select --schedule ${choice}`,
    },
  )
}

/** `--size` of commands that need no data. */
export const SELECTION_SIZES: OptionSpec = {
  flags: '--size <NAME=N>',
  about: 'A size or a statistic (longest(j)=700), for automatic selection',
  repeats: true,
}

/** Equal inputs give equal bits in every run. */
export const DETERMINISTIC: OptionSpec = {
  flags: '--deterministic',
  about: 'Reject schedules that add floats in no fixed order, and do not select them',
}

/** Options of commands that load programs: permissions of untrusted programs. */
export const TRUST = optionTable`
  --no-instr           Reject instructions and memories with device code, except those of the package
  --import-root <DIR>  Import only from this folder and from the package
`
