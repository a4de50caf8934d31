"""Jobs: functions over all there is, which run again and again and give a few records."""
