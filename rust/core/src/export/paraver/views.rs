//! Windows and histograms of what the analysis found, as a `.cfg` has them.

use std::fmt::Write as _;

use super::causes::{CRITICAL, DELAYS, PATH, TASK, WAIT_STATE};
use super::findings::FINDING;

/// Names of windows, and the types of events that they show.
const WINDOWS: [(&str, u32); 6] = [
    ("Wait state", WAIT_STATE),
    ("Wait: task waited for", TASK),
    ("Wait: call path of the cause", PATH),
    ("On the critical path", CRITICAL),
    ("Delays others", DELAYS),
    ("Finding", FINDING),
];
/// Names of histograms, and the numbers of their windows.
const HISTOGRAMS: [(&str, usize); 2] = [("Time of each wait state", 1), ("Who waits for whom", 2)];

/// Semantic functions of a window of the last value of a type.
const SELECTED: &str = "{ 14, { {cpu, Active Thd}, {appl, Adding}, {task, Adding}, {thread, Last Evt Val}, {node, Adding}, \
    {system, Adding}, {workload, Adding}, {from_obj, All}, {to_obj, All}, {tag_msg, All}, {size_msg, All}, {bw_msg, All}, \
    {evt_type, =}, {evt_value, All} } }";
const COMPOSED: &str = "{ 9, { {compose_cpu, As Is}, {compose_appl, As Is}, {compose_task, As Is}, {compose_thread, As Is}, \
    {compose_node, As Is}, {compose_system, As Is}, {compose_workload, As Is}, {topcompose1, As Is}, {topcompose2, As Is} } }";

/// The text.
pub(super) fn text() -> String {
    let rule = "#".repeat(80);
    let mut text = format!(
        "#ParaverCFG\nConfigFile.Version: 3.4\nConfigFile.NumWindows: {}\nConfigFile.BeginDescription\n\
         Waits, their causes, the critical path, and findings, as whywait found them\nConfigFile.EndDescription\n",
        WINDOWS.len()
    );
    for (number, (name, kind)) in (1..).zip(WINDOWS) {
        let (x, y) = (20, 20 + 140 * (number - 1));
        let _ = write!(
            text,
            "\n{rule}\n< NEW DISPLAYING WINDOW {name} >\n{rule}\nwindow_name {name}\nwindow_type single\n\
             window_id {number}\nwindow_position_x {x}\nwindow_position_y {y}\nwindow_width 800\nwindow_height 120\n\
             window_comm_lines_enabled false\nwindow_flags_enabled false\nwindow_noncolor_mode true\n\
             window_logical_filtered true\nwindow_physical_filtered false\nwindow_comm_fromto true\n\
             window_comm_tagsize true\nwindow_comm_typeval true\nwindow_units Microseconds\n\
             window_maximum_y 10.000000000000\nwindow_minimum_y 0.000000000000\nwindow_compute_y_max true\n\
             window_level thread\nwindow_scale_relative 1.000000000000\nwindow_end_time_relative 1.000000000000\n\
             window_object appl {{ 1, {{ All }} }}\nwindow_begin_time_relative 0.000000000000\nwindow_open true\n\
             window_drawmode draw_maximum\nwindow_drawmode_rows draw_maximum\nwindow_pixel_size 1\n\
             window_labels_to_draw 1\nwindow_selected_functions {SELECTED}\nwindow_compose_functions {COMPOSED}\n\
             window_filter_module evt_type 1 {kind}\nwindow_filter_module evt_type_label 1 \"{name}\"\n"
        );
    }
    for (name, window) in HISTOGRAMS {
        let _ = write!(
            text,
            "\n< NEW ANALYZER2D >\nAnalyzer2D.Name: {name}\nAnalyzer2D.X: 860\nAnalyzer2D.Y: {}\nAnalyzer2D.Width: 600\n\
             Analyzer2D.Height: 300\nAnalyzer2D.ControlWindow: {window}\nAnalyzer2D.DataWindow: {window}\n\
             Analyzer2D.Accumulator: Semantic\nAnalyzer2D.Statistic: Time\nAnalyzer2D.CalculateAll: True\n\
             Analyzer2D.HideCols: True\nAnalyzer2D.HorizVert: Horizontal\nAnalyzer2D.Color: True\n\
             Analyzer2D.SemanticColor: False\nAnalyzer2D.Zoom: Disabled\nAnalyzer2D.SortCols: False\n\
             Analyzer2D.SortCriteria: Average\nAnalyzer2D.AnalysisLimits: Alltrace\n\
             Analyzer2D.ComputeYScale: True\nAnalyzer2D.Minimum: 0.000000000000\nAnalyzer2D.Maximum: 1000.000000000000\n\
             Analyzer2D.Delta: 1.000000000000\nAnalyzer2D.ComputeGradient: True\n",
            20 + 320 * (window - 1)
        );
    }
    text
}
