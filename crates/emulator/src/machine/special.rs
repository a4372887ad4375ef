//! Special registers: who a thread is, and where.

use super::Cluster;

/// Multiprocessors of an H200, over which blocks are spread in turn.
const PROCESSORS: u32 = 132;

impl Cluster<'_, '_> {
    pub fn special(&self, name: &str, warp: usize, lane: usize) -> u64 {
        let thread = (self.warp_in_block(warp) * 32 + lane) as u32;
        let [x, y, _] = self.shape.block;
        let before = (1u64 << lane) - 1;
        match name {
            "%tid.x" => u64::from(thread % x),
            "%tid.y" => u64::from(thread / x % y),
            "%tid.z" => u64::from(thread / (x * y)),
            "%laneid" => lane as u64,
            "%warpid" => self.warp_in_block(warp) as u64,
            "%nwarpid" => self.warps_per_block() as u64,
            "%lanemask_eq" => 1 << lane,
            "%lanemask_lt" => before,
            "%lanemask_le" => before | 1 << lane,
            "%lanemask_gt" => !(before | 1 << lane) & 0xffff_ffff,
            "%lanemask_ge" => !before & 0xffff_ffff,
            "%dynamic_smem_size" => u64::from(self.shape.shared),
            "%total_smem_size" | "%aggr_smem_size" => self.home(warp).shared.bytes.len() as u64,
            "%clock" | "%globaltimer_lo" => self.warps[warp].steps & 0xffff_ffff,
            "%clock64" | "%globaltimer" => self.warps[warp].steps,
            "%clock_hi" | "%globaltimer_hi" => self.warps[warp].steps >> 32,
            "%nsmid" => u64::from(PROCESSORS),
            "%smid" => (self.progress().0 + self.rank(warp) as u64) % u64::from(PROCESSORS),
            "%gridid" => 0,
            "%cluster_ctarank" => self.rank(warp) as u64,
            "%cluster_nctarank" => self.blocks.len() as u64,
            "%is_explicit_cluster" => u64::from(self.shape.explicit_cluster),
            other => u64::from(self.dimension(other, warp)),
        }
    }

    /// `%ntid.x`, `%ctaid.y`, `%nctaid.z`, and the same of clusters.
    fn dimension(&self, name: &str, warp: usize) -> u32 {
        let (stem, component) = name.split_at(name.len() - 1);
        let axis = usize::from(component.as_bytes()[0] - b'x');
        let (block, cluster) = (self.home(warp).index[axis], self.shape.cluster[axis]);
        match stem {
            "%ntid." => self.shape.block[axis],
            "%ctaid." => block,
            "%clusterid." => block / cluster,
            "%nclusterid." => self.shape.grid[axis] / cluster,
            "%cluster_ctaid." => block % cluster,
            "%cluster_nctaid." => cluster,
            _ => self.shape.grid[axis],
        }
    }
}
