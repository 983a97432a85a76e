/** Options shared by several commands. */
import type { OptionSpec } from './command.ts'

export const KERNEL: OptionSpec = {
  flags: '--kernel <K>',
  about: 'Name of the kernel (default: the only kernel, or the kernel named like the file)',
}

export const schedule = (about: string): OptionSpec => ({ flags: '--schedule <S>', about })

/** Options of commands that run a kernel on a device. */
export const SCHEDULE = schedule(
  'A schedule: gpu, or gpu(8, 32) with arguments (default: auto, otherwise cpu on cpu and gpu on other devices, if legal)',
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

/** Options of commands that may select a schedule for a device without opening it. */
export const DEVICE_PROPERTIES: readonly OptionSpec[] = [
  {
    flags: '--capability <C>',
    about: 'CUDA compute capability for automatic selection (9.0)',
  },
  {
    flags: '--processors <N>',
    about: 'Number of SMs for automatic selection',
  },
  {
    flags: '--feature <F>',
    about: 'Device feature for automatic selection (subgroups)',
    repeats: true,
  },
]

/** `--size` of commands that need no data. */
export const SELECTION_SIZES: OptionSpec = {
  flags: '--size <NAME=N>',
  about: 'A size or a statistic (longest(j)=700), for automatic selection',
  repeats: true,
}

/** Options of commands that load programs: permissions of untrusted programs. */
export const TRUST: readonly OptionSpec[] = [
  {
    flags: '--no-instr',
    about: 'Reject instructions and memories with device code, except those of the package',
  },
  {
    flags: '--import-root <DIR>',
    about: 'Import only from this folder and from the package',
  },
]
