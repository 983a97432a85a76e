import { vite as sparsetile } from 'sparsetile/bundler'

// Vite builds the scripts of workers separately, with plugins of their own.
export default { plugins: [sparsetile()], worker: { format: 'es', plugins: () => [sparsetile()] } }
